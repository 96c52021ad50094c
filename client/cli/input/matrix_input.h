// SPDX-License-Identifier: Apache-2.0

// Matrices and right-hand sides on the command line.
#ifndef CROUT_CLIENT_CLI_INPUT_MATRIX_INPUT_H_
#define CROUT_CLIENT_CLI_INPUT_MATRIX_INPUT_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/formats/array.h"
#include "client/cli/formats/temporary_file.h"
#include "crout/matrix_source.h"

namespace crout::cli {

enum class InputFormat { kMatrixMarket, kNpy, kNpz, kText };

// A file, or standard input ("-"): Matrix Market, plain or gzip, .npy, .npz or plain text. The
// first byte determines the format, not the name. A terminal or named FIFO must be Matrix Market,
// because its first byte cannot be read in advance. "F.npz:NAME" is one array of an archive;
// "F.npz" is its only array, or the sparse matrix that scipy.sparse.save_npz wrote.
class MatrixInput {
 public:
  // Opens an input. An unset `dtype` selects the type of the file. A Matrix Market file is only
  // opened, and the server parses it; other formats are read into memory. FileError, or
  // INVALID_ARGUMENT for invalid contents. DEADLINE_EXCEEDED if standard input has no data by
  // `deadline`.
  static absl::StatusOr<MatrixInput> Open(const std::string& path, std::optional<Dtype> dtype,
                                          absl::Time deadline);

  // Opens a matrix for which Rows() is called: Matrix Market on standard input is first copied to a
  // file.
  static absl::StatusOr<MatrixInput> OpenWithRows(const std::string& path,
                                                  std::optional<Dtype> dtype, absl::Time deadline);

  // Opens a right-hand side in column-major order, because the solution has its layout and is
  // written by columns.
  static absl::StatusOr<MatrixInput> OpenByColumns(const std::string& path,
                                                   std::optional<Dtype> dtype, absl::Time deadline);

  // Source of the matrix; refers to this object.
  MatrixSource Source() const;
  Dtype dtype() const { return dtype_; }
  // Number of rows. INVALID_ARGUMENT if a Matrix Market file does not declare it. Not for a pipe,
  // unless opened with OpenWithRows.
  absl::StatusOr<int64_t> Rows() const;

  // The matrix in memory, in one of these forms; neither for Matrix Market.
  const std::optional<Array>& array() const { return array_; }
  const std::optional<SparseArray>& sparse() const { return sparse_; }
  // Path of a Matrix Market file, also for standard input.
  const std::string& path() const { return path_; }

 private:
  MatrixInput(std::string path, Dtype dtype) : path_(std::move(path)), dtype_(dtype) {}

  std::string path_;
  Dtype dtype_;
  std::optional<Array> array_;
  std::optional<SparseArray> sparse_;
  TemporaryFile copy_ = NoTemporaryFile();  // copy of standard input, if path_ names it
};

// The format of a file that begins with `first_byte`; Matrix Market if the file is empty.
InputFormat FormatByFirstByte(std::optional<unsigned char> first_byte);

// Name of "-" in messages.
inline constexpr char kStandardInput[] = "standard input";
// Replaces `path` by `name` in the message of `status`, for a file whose path the user does not
// see.
absl::Status Named(const absl::Status& status, const std::string& path, const std::string& name);

// Strips an ending of matrices' names from `name`: .mtx, .npy, .npz, .txt or .csv, with or without
// .gz. False if there is none.
bool StripMatrixEnding(absl::string_view* name);

// Accepts an existing file, "F.npz:NAME" with an existing F.npz, or - for standard input.
CLI::Validator InputFile();
// Accepts an existing file or directory, or - for standard input.
CLI::Validator InputPath();
// CLI::ValidationError if more than one of `paths` is standard input.
void CheckOneStandardInput(const std::vector<std::string>& paths);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_INPUT_MATRIX_INPUT_H_
