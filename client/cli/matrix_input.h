// A matrix or right-hand side on the command line.
#ifndef CROUT_CLIENT_CLI_MATRIX_INPUT_H_
#define CROUT_CLIENT_CLI_MATRIX_INPUT_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/array.h"
#include "crout/matrix_source.h"

namespace crout::cli {

enum class InputFormat { kMatrixMarket, kNpy, kNpz, kText };

// A file, or standard input as "-": Matrix Market, plain or gzip, .npy, .npz or plain text. The
// first byte tells which, not the name; of what can be read once and is no pipe (a terminal, a FIFO
// with a name), it is Matrix Market. "F.npz:NAME" is one array of an archive.
class MatrixInput {
 public:
  // `dtype` unspecified: as the file says. A Matrix Market file is only opened, and the server
  // reads it; all others are read into memory. FileError, or INVALID_ARGUMENT for what is in it.
  // DEADLINE_EXCEEDED where standard input gives nothing until then.
  static absl::StatusOr<MatrixInput> Open(const std::string& path, v1::Dtype dtype,
                                          absl::Time deadline);

  // What comes back for a matrix has its layout, and is written by columns: for right-hand sides.
  static absl::StatusOr<MatrixInput> OpenByColumns(const std::string& path, v1::Dtype dtype,
                                                   absl::Time deadline);

  // Refers to this object.
  client::MatrixSource Source() const;
  v1::Dtype dtype() const { return dtype_; }
  // INVALID_ARGUMENT where a Matrix Market file does not say. Not for one on a pipe.
  absl::StatusOr<int64_t> Rows() const;

  // What is in memory; none of Matrix Market files.
  const std::optional<Array>& array() const { return array_; }
  // Of a Matrix Market file, standard input too.
  const std::string& path() const { return path_; }

 private:
  MatrixInput(std::string path, v1::Dtype dtype) : path_(std::move(path)), dtype_(dtype) {}

  std::string path_;
  v1::Dtype dtype_;
  std::optional<Array> array_;
};

// The format of a file that begins with `first_byte`; Matrix Market if it is empty.
InputFormat FormatByFirstByte(std::optional<unsigned char> first_byte);

// An existing file, "F.npz:NAME" with an existing F.npz, or - for standard input.
CLI::Validator InputFile();

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_MATRIX_INPUT_H_
