// SPDX-License-Identifier: Apache-2.0

// Temporary files and directories, which are removed when they are closed.
#ifndef CROUT_CLIENT_CLI_FORMATS_TEMPORARY_FILE_H_
#define CROUT_CLIENT_CLI_FORMATS_TEMPORARY_FILE_H_

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/formats/byte_input.h"

namespace crout::cli {

using TemporaryFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
inline TemporaryFile NoTemporaryFile() { return {nullptr, std::fclose}; }

// FileError if none can be created.
absl::StatusOr<TemporaryFile> NewTemporaryFile();

// Appends `text`; readers by PathOf() see it immediately. FileError.
absl::Status Write(const TemporaryFile& file, absl::string_view text);

// A path that opens the file again while it is open.
std::string PathOf(const TemporaryFile& file);

// Copies standard input to a file, for formats that are read more than once or from the end.
// FileError if it cannot be read or stored; DEADLINE_EXCEEDED if it has no data by `deadline`.
absl::StatusOr<TemporaryFile> CopyOfStandardInput(absl::Time deadline);
// The same for any input. Errors of `input`, or a FileError.
absl::StatusOr<TemporaryFile> CopyOf(ByteInput* input);

// Passes the whole `file` to `take`, in pieces. FileError if it cannot be read; otherwise the first
// error of `take`.
absl::Status ReadAll(const TemporaryFile& file,
                     absl::FunctionRef<absl::Status(absl::string_view)> take);

// A directory with access for the owner only; it is removed with its contents.
class TemporaryDirectory {
 public:
  // FileError if none can be created.
  static absl::StatusOr<TemporaryDirectory> Make();
  TemporaryDirectory(TemporaryDirectory&&) = default;
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;  // One directory, one owner.
  ~TemporaryDirectory();

  const std::string& path() const { return *path_; }

 private:
  explicit TemporaryDirectory(std::string path)
      : path_(std::make_unique<std::string>(std::move(path))) {}

  std::unique_ptr<const std::string> path_;  // null once moved from
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_TEMPORARY_FILE_H_
