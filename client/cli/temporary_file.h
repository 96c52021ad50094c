// Files without a name, which go when they are closed.
#ifndef CROUT_CLIENT_CLI_TEMPORARY_FILE_H_
#define CROUT_CLIENT_CLI_TEMPORARY_FILE_H_

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace crout::cli {

using TemporaryFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
inline TemporaryFile NoTemporaryFile() { return {nullptr, std::fclose}; }

// FileError where the system gives none.
absl::StatusOr<TemporaryFile> NewTemporaryFile();

// Adds to its end, for those who read it by PathOf() as well. FileError.
absl::Status Write(const TemporaryFile& file, absl::string_view text);

// A path by which it can be opened again, as long as it is open, for what takes paths.
std::string PathOf(const TemporaryFile& file);

// All of standard input, for what is read more than once, or from its end. FileError where it
// cannot be read or kept; DEADLINE_EXCEEDED where it gives nothing until then.
absl::StatusOr<TemporaryFile> CopyOfStandardInput(absl::Time deadline);

// Gives all of `file` to `take`, piece by piece. FileError where it cannot be read, or the first
// error of `take`.
absl::Status ReadAll(const TemporaryFile& file,
                     absl::FunctionRef<absl::Status(absl::string_view)> take);

// A directory of its owner's alone, which goes with what is in it.
class TemporaryDirectory {
 public:
  // FileError where the system gives none.
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

#endif  // CROUT_CLIENT_CLI_TEMPORARY_FILE_H_
