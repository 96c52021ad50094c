// SPDX-License-Identifier: Apache-2.0

// Reader of tar archives.
#ifndef CROUT_CLIENT_CLI_FORMATS_TAR_READER_H_
#define CROUT_CLIENT_CLI_FORMATS_TAR_READER_H_

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
#include "absl/types/span.h"
#include "client/cli/formats/byte_input.h"
#include "kernels/io/gzip_inflater.h"

namespace crout::cli {

// Whether the first block of a regular file, plain or gzip, is a tar header of POSIX's or GNU's
// format.
bool IsTar(const std::string& path);
// Whether an input, plain or gzip, that begins with `bytes` is a tar. nullopt: more bytes are
// needed.
std::optional<bool> IsTarThatBegins(absl::Span<const std::byte> bytes);

// The regular files of an archive in order, read as a stream; nothing is held in memory.
class TarReader {
 public:
  // Limit of a gzip archive's unpacked size, as a multiple of its compressed size.
  static constexpr int64_t kMaxRatio = 200;

  // FileError if the archive cannot be opened.
  static absl::StatusOr<TarReader> Open(const std::string& path);
  // Reads an archive that may still arrive: no call waits for bytes after the file or header that
  // it returns. `name`: in messages.
  TarReader(std::string name, std::unique_ptr<ByteInput> input)
      : path_(std::move(name)), input_(std::move(input)) {}

  // Returns the name of the next file as stored; no file is opened by this name. nullopt at the
  // end of the input. INVALID_ARGUMENT if the file is not an archive, for truncated or damaged
  // archives, and for entries that are neither files nor directories, such as links.
  // RESOURCE_EXHAUSTED beyond kMaxRatio.
  absl::StatusOr<std::optional<std::string>> Next();

  // Passes the whole file to `take`, in pieces. Next() skips a file that was not read. Errors as
  // from Next(), or the first error of `take`.
  absl::Status Read(absl::FunctionRef<absl::Status(absl::string_view)> take);

 private:
  absl::Status Malformed(const std::string& why) const;
  // Reads the next `size` bytes and the padding of their last block, which may be missing at the
  // end.
  absl::Status Read(int64_t size, const std::string& name,
                    absl::FunctionRef<absl::Status(absl::string_view)> take);
  absl::StatusOr<std::string> ReadText(int64_t size, const std::string& name);
  // Returns some of the next bytes, at most max_bytes; none only at the end or for 0.
  absl::StatusOr<absl::string_view> ReadPiece(int64_t max_bytes);
  // Reads the next bytes into packed_. Leaves it empty at the end of the input.
  absl::Status Refill();

  std::string path_;
  std::unique_ptr<ByteInput> input_;
  std::unique_ptr<GzipInflater> inflater_;  // null: the archive is plain
  std::vector<std::byte> buffer_ = std::vector<std::byte>(size_t{64} << 10);
  absl::string_view packed_;  // bytes in buffer_ that were not inflated or returned
  std::vector<char> text_;    // inflated bytes
  int64_t bytes_in_ = 0;
  int64_t bytes_out_ = 0;
  std::string name_;  // name of the file that Read() returns
  int64_t size_ = 0;  // its remaining size; 0 after Read()
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_TAR_READER_H_
