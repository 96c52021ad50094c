// SPDX-License-Identifier: Apache-2.0

#include "client/cli/input/matrix_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "client/cli/exit_codes.h"
#include "client/cli/formats/byte_input.h"
#include "client/cli/formats/matrix_market.h"
#include "client/cli/formats/npy.h"
#include "client/cli/formats/npz.h"
#include "client/cli/formats/text_matrix.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

// The next byte of a pipe, without consuming it; nullopt at its end.
std::optional<unsigned char> PeekPipe(int fd) {
  int copy[2];
  if (pipe2(copy, O_CLOEXEC) != 0) return std::nullopt;
  unsigned char byte = 0;
  ssize_t got;
  do {
    got = tee(fd, copy[1], 1, 0);
  } while (got < 0 && errno == EINTR);
  const bool there = got == 1 && read(copy[0], &byte, 1) == 1;
  close(copy[0]);
  close(copy[1]);
  return there ? std::optional(byte) : std::nullopt;
}

// The next byte of a file, without consuming it.
std::optional<unsigned char> PeekFile(int fd) {
  unsigned char byte = 0;
  const off_t at = lseek(fd, 0, SEEK_CUR);
  return pread(fd, &byte, 1, at) == 1 ? std::optional(byte) : std::nullopt;
}

absl::StatusOr<InputFormat> FormatOfInput(const std::string& path, absl::Time deadline) {
  struct stat info;
  if (path == "-") {
    if (fstat(STDIN_FILENO, &info) != 0) return FileErrnoError(errno, "cannot read standard input");
    if (S_ISFIFO(info.st_mode)) {
      if (absl::Status status = AwaitInput(STDIN_FILENO, deadline); !status.ok()) return status;
      return FormatByFirstByte(PeekPipe(STDIN_FILENO));
    }
    if (S_ISREG(info.st_mode)) return FormatByFirstByte(PeekFile(STDIN_FILENO));
    return InputFormat::kMatrixMarket;
  }
  // Not opened: the writer of a FIFO would lose its reader.
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return InputFormat::kMatrixMarket;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileErrnoError(errno, absl::StrCat("cannot open ", path));
  const auto first_byte = PeekFile(fd);
  close(fd);
  return FormatByFirstByte(first_byte);
}

// Splits "F.npz:NAME" into F.npz and NAME, unless a file has the whole name.
std::pair<std::string, std::string> SplitMember(const std::string& path) {
  const size_t colon = path.rfind(".npz:");
  struct stat info;
  if (colon == std::string::npos || stat(path.c_str(), &info) == 0) return {path, ""};
  return {path.substr(0, colon + 4), path.substr(colon + 5)};
}

using Matrix = std::variant<Array, SparseArray>;

absl::StatusOr<Matrix> ReadMatrix(InputFormat format, const std::string& path,
                                  const std::string& member, absl::Time deadline) {
  if (format == InputFormat::kNpz) return ReadNpz(path, member, deadline);
  const auto input = OpenInput(path, deadline);
  if (!input.ok()) return input.status();
  return format == InputFormat::kNpy ? ReadNpy(input->get()) : ReadTextMatrix(input->get());
}

absl::StatusOr<Matrix> As(Dtype dtype, Matrix matrix) {
  return std::visit(
      [&](auto& typed) -> absl::StatusOr<Matrix> { return std::move(typed).As(dtype); }, matrix);
}

}  // namespace

InputFormat FormatByFirstByte(std::optional<unsigned char> first_byte) {
  switch (first_byte.value_or('%')) {
    case '%':
    case 0x1f:  // gzip
      return InputFormat::kMatrixMarket;
    case 0x93:
      return InputFormat::kNpy;
    case 'P':  // PK, the start of zip files
      return InputFormat::kNpz;
    default:
      return InputFormat::kText;
  }
}

absl::StatusOr<MatrixInput> MatrixInput::Open(const std::string& path, std::optional<Dtype> dtype,
                                              absl::Time deadline) {
  const auto [file, member] = SplitMember(path);
  const auto format = FormatOfInput(file, deadline);
  if (!format.ok()) return format.status();
  if (*format == InputFormat::kMatrixMarket) {
    const std::string name = file == "-" ? "/dev/stdin" : file;
    if (!dtype) {
      dtype = MatrixMarketIsComplex(name) ? Dtype::kComplex128 : Dtype::kFloat64;
    }
    return MatrixInput(name, *dtype);
  }
  auto matrix = ReadMatrix(*format, file, member, deadline);
  if (matrix.ok() && dtype) matrix = As(*dtype, *std::move(matrix));
  if (IsFileError(matrix.status()) || absl::IsDeadlineExceeded(matrix.status())) {
    return matrix.status();
  }
  if (!matrix.ok()) {
    return absl::Status(
        matrix.status().code(),
        absl::StrCat(path == "-" ? kStandardInput : path.c_str(), ": ", matrix.status().message()));
  }
  MatrixInput input("", Dtype::kFloat64);
  if (auto* array = std::get_if<Array>(&*matrix)) {
    input.dtype_ = array->dtype;
    input.array_ = std::move(*array);
  } else {
    input.sparse_ = std::get<SparseArray>(*std::move(matrix));
    input.dtype_ = input.sparse_->values.dtype;
  }
  return input;
}

absl::StatusOr<MatrixInput> MatrixInput::OpenWithRows(const std::string& path,
                                                      std::optional<Dtype> dtype,
                                                      absl::Time deadline) {
  if (path != "-") return Open(path, dtype, deadline);
  const auto format = FormatOfInput(path, deadline);
  if (format.ok() && *format != InputFormat::kMatrixMarket) return Open(path, dtype, deadline);
  auto copy = CopyOfStandardInput(deadline);
  if (!copy.ok()) return copy.status();
  auto input = Open(PathOf(*copy), dtype, deadline);
  if (!input.ok()) return Named(input.status(), PathOf(*copy), kStandardInput);
  input->copy_ = *std::move(copy);
  return input;
}

absl::StatusOr<MatrixInput> MatrixInput::OpenByColumns(const std::string& path,
                                                       std::optional<Dtype> dtype,
                                                       absl::Time deadline) {
  auto input = Open(path, dtype, deadline);
  if (input.ok() && input->array_.has_value()) {
    input->array_ = (*std::move(input->array_)).ByColumns();
  }
  return input;
}

MatrixSource MatrixInput::Source() const {
  if (array_.has_value()) return array_->Source();
  if (sparse_.has_value()) return sparse_->Source();
  return MatrixSource::MatrixMarketFile(path_, dtype_);
}

absl::StatusOr<int64_t> MatrixInput::Rows() const {
  if (array_.has_value()) return array_->rows;
  if (sparse_.has_value()) return sparse_->rows;
  auto rows = MatrixMarketRows(path_);
  if (!rows.ok() && copy_ != nullptr) return Named(rows.status(), path_, kStandardInput);
  return rows;
}

absl::Status Named(const absl::Status& status, const std::string& path, const std::string& name) {
  const std::string message = absl::StrReplaceAll(status.message(), {{path, Printable(name)}});
  if (IsFileError(status)) return FileError(message);
  return {status.code(), message};
}

bool StripMatrixEnding(absl::string_view* name) {
  absl::ConsumeSuffix(name, ".gz");
  for (const char* ending : {".mtx", ".npy", ".npz", ".txt", ".csv"}) {
    if (absl::ConsumeSuffix(name, ending)) return true;
  }
  return false;
}

CLI::Validator InputFile() {
  return CLI::Validator(
      [](const std::string& path) {
        return path == "-" ? std::string() : CLI::ExistingFile(SplitMember(path).first);
      },
      "FILE|-");
}

void CheckOneStandardInput(const std::vector<std::string>& paths) {
  if (std::count(paths.begin(), paths.end(), "-") > 1) {
    throw CLI::ValidationError("-", "- can be given once. Write the other inputs to files");
  }
}

CLI::Validator InputPath() {
  return CLI::Validator(
      [](const std::string& path) { return path == "-" ? std::string() : CLI::ExistingPath(path); },
      "FILE|DIR|-");
}

}  // namespace crout::cli
