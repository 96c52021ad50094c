// Files of a few lines that a program keeps between its runs.
#ifndef CROUT_KERNELS_UTIL_SMALL_FILE_H_
#define CROUT_KERNELS_UTIL_SMALL_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace crout {

// The contents of a regular file of at most `max_bytes`; links are not followed. NOT_FOUND where
// there is none, FAILED_PRECONDITION where it is something else or longer, else the system's
// reason.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes);

// Puts the contents there as a whole, for this user alone; makes directories that are missing.
// Readers find the old file or the new one.
absl::Status ReplaceSmallFile(const std::string& path, const std::string& contents);

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_SMALL_FILE_H_
