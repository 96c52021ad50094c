// A matrix or right-hand side on the command line.
#ifndef CROUT_CLIENT_CLI_MATRIX_INPUT_H_
#define CROUT_CLIENT_CLI_MATRIX_INPUT_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/array.h"
#include "client/cli/sparse_array.h"
#include "client/cli/temporary_file.h"
#include "crout/matrix_source.h"

namespace crout::cli {

enum class InputFormat { kMatrixMarket, kNpy, kNpz, kText };

// A file, or standard input as "-": Matrix Market, plain or gzip, .npy, .npz or plain text. The
// first byte tells which, not the name; of what can be read once and is no pipe (a terminal, a FIFO
// with a name), it is Matrix Market. "F.npz:NAME" is one array of an archive, "F.npz" its only one,
// or the sparse matrix that scipy.sparse.save_npz wrote.
class MatrixInput {
 public:
  // `dtype` unspecified: as the file says. A Matrix Market file is only opened, and the server
  // reads it; all others are read into memory. FileError, or INVALID_ARGUMENT for what is in it.
  // DEADLINE_EXCEEDED where standard input gives nothing until then.
  static absl::StatusOr<MatrixInput> Open(const std::string& path, v1::Dtype dtype,
                                          absl::Time deadline);

  // The same of a matrix whose Rows() are asked for: Matrix Market on standard input is copied to a
  // file first.
  static absl::StatusOr<MatrixInput> OpenWithRows(const std::string& path, v1::Dtype dtype,
                                                  absl::Time deadline);

  // What comes back for a matrix has its layout, and is written by columns: for right-hand sides.
  static absl::StatusOr<MatrixInput> OpenByColumns(const std::string& path, v1::Dtype dtype,
                                                   absl::Time deadline);

  // Refers to this object.
  client::MatrixSource Source() const;
  v1::Dtype dtype() const { return dtype_; }
  // INVALID_ARGUMENT where a Matrix Market file does not say. Not for one on a pipe, unless it came
  // by OpenWithRows.
  absl::StatusOr<int64_t> Rows() const;

  // The matrix in memory, in one of these forms; none for Matrix Market files.
  const std::optional<Array>& array() const { return array_; }
  const std::optional<SparseArray>& sparse() const { return sparse_; }
  // Of a Matrix Market file, standard input too.
  const std::string& path() const { return path_; }

 private:
  MatrixInput(std::string path, v1::Dtype dtype) : path_(std::move(path)), dtype_(dtype) {}

  std::string path_;
  v1::Dtype dtype_;
  std::optional<Array> array_;
  std::optional<SparseArray> sparse_;
  TemporaryFile copy_ = NoTemporaryFile();  // of standard input, where path_ is it
};

// The format of a file that begins with `first_byte`; Matrix Market if it is empty.
InputFormat FormatByFirstByte(std::optional<unsigned char> first_byte);

// What messages call "-".
inline constexpr char kStandardInput[] = "standard input";
// `status`, which tells of `name` where it told of `path`: of a file that nobody knows by its path.
absl::Status Named(const absl::Status& status, const std::string& path, const std::string& name);

// Takes the ending that the names of matrices have, .mtx, .npy, .npz, .txt or .csv, with or without
// .gz, from `name`; false where it has none.
bool StripMatrixEnding(absl::string_view* name);

// An existing file, "F.npz:NAME" with an existing F.npz, or - for standard input.
CLI::Validator InputFile();
// An existing file or directory, or - for standard input.
CLI::Validator InputPath();
// A CLI::ValidationError where standard input is more than one of `paths`.
void CheckOneStandardInput(const std::vector<std::string>& paths);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_MATRIX_INPUT_H_
