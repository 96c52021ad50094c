// SPDX-License-Identifier: Apache-2.0

// Reads the files that settings name. Checks their permissions, because their contents determine
// the rights of callers.
#ifndef CROUT_SERVER_AUTH_SETTING_FILE_H_
#define CROUT_SERVER_AUTH_SETTING_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace crout {

// A setting and the path of its file, which must outlive the object.
struct SettingFile {
  const char* flag;
  const std::string& path;

  // Returns FAILED_PRECONDITION: "FLAG: PATH WHY".
  absl::Status Refuse(absl::string_view why) const;
};

// State of a file that is reloaded when it changes, for the metrics.
struct FileState {
  absl::Time read_time;  // time at which the contents in use were read
  bool refused = false;  // the current file is invalid; the contents in use are older
};

// Permitted readers of a file: all users, or only its owner and its group. In both cases only the
// owner may write the file, because its contents determine which callers are trusted.
enum class FileAccess { kPublic, kPrivate };

// Returns the contents of `file`. Returns FAILED_PRECONDITION, with the fix, unless it is a
// readable regular file of less than 1 MiB whose mode grants no more than `access`. Mode and
// contents come from the same open file, even if the path is replaced meanwhile.
absl::StatusOr<std::string> ReadSettingFile(const SettingFile& file, FileAccess access);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_SETTING_FILE_H_
