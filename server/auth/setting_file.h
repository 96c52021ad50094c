// SPDX-License-Identifier: Apache-2.0

// The files that settings name, read with care: whose they are decides who may do what.
#ifndef CROUT_SERVER_AUTH_SETTING_FILE_H_
#define CROUT_SERVER_AUTH_SETTING_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace crout {

// A setting and the file that it names.
struct SettingFile {
  const char* flag;
  const std::string& path;

  // FAILED_PRECONDITION: "FLAG: PATH WHY".
  absl::Status Refuse(absl::string_view why) const;
};

// How a file that is read again and again stands, for the metrics.
struct FileStanding {
  absl::Time taken;      // when what is in use was read
  bool refused = false;  // the file is not good any more: what is in use is older
};

// Who besides its owner may read a file: anyone, or at most its group. To write is its owner's
// alone: whoever may changes who is trusted.
enum class FileAccess { kPublic, kPrivate };

// What `file` holds. FAILED_PRECONDITION, with what to do, unless it is a regular file of less than
// 1 MiB that can be read, and nobody has more access than that. Mode and contents are of one and
// the same file, whatever its name comes to mean meanwhile.
absl::StatusOr<std::string> ReadSettingFile(const SettingFile& file, FileAccess access);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_SETTING_FILE_H_
