// SPDX-License-Identifier: Apache-2.0

// Writers of dense matrices to files.
#ifndef CROUT_CLIENT_CLI_OUTPUT_ARRAY_WRITER_H_
#define CROUT_CLIENT_CLI_OUTPUT_ARRAY_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cli/formats/array.h"
#include "crout/matrix_sink.h"

namespace crout::cli {

enum class FileFormat {
  kMatrixMarket,  // `array`; numbers in the fewest digits that read back to the same value
  kNpy,
  kNpz,   // one array, "x"
  kText,  // numpy.savetxt's format; buffered, because rows are complete only at the end
};

// Selects the format by the name's ending: .npy, .npz, .txt, .csv; otherwise, and for "-", Matrix
// Market.
FileFormat FormatOf(const std::string& path);
// The endings that select a format.
inline constexpr char kEndings[] = ".mtx, .npy, .npz, .txt or .csv";
// Whether the name has an ending that is not in kEndings.
bool HasUnknownEnding(const std::string& path);
// The name of a format and ending of its files: "mtx", "npy", "npz", "txt".
const char* NameOf(FileFormat format);

// Writes one matrix to a file, or to standard output ("-"). Errors are FileErrors.
class ArrayWriter {
 public:
  virtual ~ArrayWriter() = default;
  // Replaces the file. A second call starts over; it is an error if standard output has been
  // written to.
  virtual absl::Status Begin(Element element, int64_t rows, int64_t cols) = 0;
  // Writes the next bytes of the elements in column-major order. Pieces may split elements.
  virtual absl::Status Append(absl::Span<const std::byte> bytes) = 0;
  virtual absl::Status Close() = 0;
};

std::unique_ptr<ArrayWriter> NewArrayWriter(const std::string& path, FileFormat format);

// A sink that writes a column-major matrix to a file, or discards it if the path is empty.
class ArrayFileSink : public MatrixSink {
 public:
  explicit ArrayFileSink(const std::string& path) : ArrayFileSink(path, FormatOf(path)) {}
  ArrayFileSink(const std::string& path, FileFormat format);

  absl::Status Begin(const DenseSpec& spec) override;
  absl::Status Append(absl::Span<const std::byte> bytes) override;
  absl::Status Close();

 private:
  std::unique_ptr<ArrayWriter> writer_;  // null: no file
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_OUTPUT_ARRAY_WRITER_H_
