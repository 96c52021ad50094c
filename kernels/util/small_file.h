// SPDX-License-Identifier: Apache-2.0

// Small files that a program keeps between runs.
#ifndef CROUT_KERNELS_UTIL_SMALL_FILE_H_
#define CROUT_KERNELS_UTIL_SMALL_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace crout {

// Reads a regular file of at most `max_bytes` without following links. NOT_FOUND if it does not
// exist, FAILED_PRECONDITION if it is not a regular file or is larger, otherwise the system's
// error.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes);

// Replaces the contents atomically: readers see either the old or the new file. The file is
// accessible to this user only. Creates missing directories.
absl::Status ReplaceSmallFile(const std::string& path, const std::string& contents);

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_SMALL_FILE_H_
