// Dense matrices as files.
#ifndef CROUT_CLIENT_CLI_ARRAY_WRITER_H_
#define CROUT_CLIENT_CLI_ARRAY_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cli/array.h"
#include "crout/matrix_sink.h"

namespace crout::cli {

enum class FileFormat {
  kMatrixMarket,  // `array`, each number in the fewest digits that read back to the same value
  kNpy,
  kNpz,   // one array, "x"
  kText,  // as numpy.savetxt; held in memory until its end, as its rows come last
};

// By the ending of the name: .npy, .npz, .txt, .csv; Matrix Market for all others and for "-".
FileFormat FormatOf(const std::string& path);
// "mtx", "npy", "txt": also the ending of such files.
const char* NameOf(FileFormat format);

// Writes one matrix to a file, or, as "-", to standard output. Errors are FileErrors.
class ArrayWriter {
 public:
  virtual ~ArrayWriter() = default;
  // Replaces the file. Called again, starts over; on standard output that is an error once
  // something has been written.
  virtual absl::Status Begin(Element element, int64_t rows, int64_t cols) = 0;
  // The next bytes, wherever they are cut: elements in column-major order.
  virtual absl::Status Append(absl::Span<const std::byte> bytes) = 0;
  virtual absl::Status Close() = 0;
};

std::unique_ptr<ArrayWriter> NewArrayWriter(const std::string& path, FileFormat format);

// A sink that writes the matrix, which must be column-major, to a file; with an empty path, to
// none.
class ArrayFileSink : public client::MatrixSink {
 public:
  explicit ArrayFileSink(const std::string& path) : ArrayFileSink(path, FormatOf(path)) {}
  ArrayFileSink(const std::string& path, FileFormat format);

  absl::Status Begin(const v1::DenseSpec& spec) override;
  absl::Status Append(absl::Span<const std::byte> bytes) override;
  absl::Status Close();

 private:
  std::unique_ptr<ArrayWriter> writer_;  // null: no file
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_ARRAY_WRITER_H_
