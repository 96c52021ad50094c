// SPDX-License-Identifier: Apache-2.0

// Reader of tar archives.
#ifndef CROUT_CLIENT_CLI_FORMATS_TAR_READER_H_
#define CROUT_CLIENT_CLI_FORMATS_TAR_READER_H_

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

// Whether the first block of a file, plain or gzip, is a tar header of POSIX's or GNU's format.
bool IsTar(const std::string& path);

// The regular files of an archive in order, read as a stream; nothing is held in memory.
class TarReader {
 public:
  // Limit of a gzip archive's unpacked size, as a multiple of its compressed size.
  static constexpr int64_t kMaxRatio = 200;

  // FileError if the archive cannot be opened.
  static absl::StatusOr<TarReader> Open(const std::string& path);

  // Returns the name of the next file as stored; no file is opened by this name. nullopt at the
  // end. INVALID_ARGUMENT if the file is not an archive, for truncated or damaged archives, and for
  // entries that are neither files nor directories, such as links. RESOURCE_EXHAUSTED beyond
  // kMaxRatio.
  absl::StatusOr<std::optional<std::string>> Next();

  // Passes the whole file to `take`, in pieces. Next() skips a file that was not read. Errors as
  // from Next(), or the first error of `take`.
  absl::Status Read(absl::FunctionRef<absl::Status(absl::string_view)> take);

 private:
  using File = std::unique_ptr<gzFile_s, int (*)(gzFile)>;  // zlib reads plain files unchanged

  TarReader(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Malformed(const std::string& why) const;
  // Reads the next `size` bytes and the padding of their last block, which may be missing at the
  // end.
  absl::Status Read(int64_t size, const std::string& name,
                    absl::FunctionRef<absl::Status(absl::string_view)> take);
  absl::StatusOr<std::string> ReadText(int64_t size, const std::string& name);
  // At most buffer_.size() bytes; fewer only at the end.
  absl::StatusOr<absl::string_view> ReadPiece(int64_t max_bytes);

  std::string path_;
  File file_;
  std::vector<char> buffer_ = std::vector<char>(size_t{64} << 10);
  std::string name_;  // name of the file that Read() returns
  int64_t size_ = 0;  // its remaining size; 0 after Read()
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_TAR_READER_H_
