// Files in a tar archive.
#ifndef CROUT_CLIENT_CLI_TAR_READER_H_
#define CROUT_CLIENT_CLI_TAR_READER_H_

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace crout::cli {

// Whether a file is one, plain or gzip, by its first block: POSIX's format and GNU's.
bool IsTar(const std::string& path);

// The regular files of an archive in their order, read as a stream: nothing is held in memory.
class TarReader {
 public:
  // What a gzip archive may unpack to, as a multiple of its own bytes.
  static constexpr int64_t kMostRatio = 200;

  // A FileError where it cannot be opened.
  static absl::StatusOr<TarReader> Open(const std::string& path);

  // The name of the next file, as the archive has it: nothing is ever opened by it. nullopt at the
  // end. INVALID_ARGUMENT for what is no archive, for one that is cut off or damaged, and for
  // entries that are neither files nor directories, such as links. RESOURCE_EXHAUSTED beyond
  // kMostRatio.
  absl::StatusOr<std::optional<std::string>> Next();

  // Gives all of that file to `take`, piece by piece; what nobody takes Next() passes over. Errors
  // as those of Next(), or the first of `take`.
  absl::Status Read(absl::FunctionRef<absl::Status(absl::string_view)> take);

 private:
  using File = std::unique_ptr<gzFile_s, int (*)(gzFile)>;  // zlib reads plain files as they are

  TarReader(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Malformed(const std::string& why) const;
  // The next `size` bytes, and what fills their last block, which the archive's last need not have.
  absl::Status Read(int64_t size, const std::string& name,
                    absl::FunctionRef<absl::Status(absl::string_view)> take);
  absl::StatusOr<std::string> ReadText(int64_t size, const std::string& name);
  // At most buffer_.size() bytes; fewer at the end alone.
  absl::StatusOr<absl::string_view> ReadPiece(int64_t most);

  std::string path_;
  File file_;
  std::vector<char> buffer_ = std::vector<char>(size_t{64} << 10);
  std::string name_;  // of the file that Read() gives
  int64_t size_ = 0;  // of it; 0 once it was read
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_TAR_READER_H_
