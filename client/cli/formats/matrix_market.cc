// SPDX-License-Identifier: Apache-2.0

#include "client/cli/formats/matrix_market.h"

#include <sys/stat.h>
#include <zlib.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cli/exit_codes.h"

namespace crout::cli {
namespace {

using Words = std::vector<absl::string_view>;

// Splits the lines of a plain or gzip text into words; skips comments and empty lines.
class LineReader {
 public:
  explicit LineReader(const std::string& path)
      : path_(path), file_(gzopen(path.c_str(), "rb"), gzclose) {}

  bool is_open() const { return file_ != nullptr; }

  // Returns no words at the end. The words refer to this object until the next call.
  absl::StatusOr<Words> Next(bool comments) {
    for (;;) {
      ++number_;
      if (gzgets(file_.get(), line_, sizeof line_) == nullptr) {
        int error = Z_OK;
        gzerror(file_.get(), &error);
        if (error != Z_OK && error != Z_STREAM_END) {
          return Malformed("the file is unreadable or truncated");
        }
        return Words();
      }
      const absl::string_view line(line_);
      if (!absl::EndsWith(line, "\n") && line.size() + 1 == sizeof line_) {
        if (!absl::StartsWith(line, "%")) return Malformed("the line is too long");
        SkipLine();
        continue;
      }
      if (!comments && absl::StartsWith(line, "%")) continue;
      Words words = absl::StrSplit(line, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
      if (!words.empty()) return words;
    }
  }

  absl::Status Malformed(absl::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ", line ", number_, ": ", why));
  }

 private:
  void SkipLine() {
    for (int c; (c = gzgetc(file_.get())) >= 0 && c != '\n';) {
    }
  }

  const std::string path_;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  int64_t number_ = 0;
  char line_[4096];
};

// Contents of the banner.
struct Banner {
  bool coordinate = false;
  bool complex = false;
  bool pattern = false;
  std::string symmetry;
};

absl::StatusOr<Banner> ReadBanner(LineReader* lines) {
  const auto words = lines->Next(/*comments=*/true);
  if (!words.ok()) return words.status();
  std::vector<std::string> lower;
  for (const absl::string_view word : *words) lower.push_back(absl::AsciiStrToLower(word));
  if (lower.size() != 5 || lower[0] != "%%matrixmarket" || lower[1] != "matrix") {
    return lines->Malformed("no Matrix Market banner");
  }
  Banner banner{lower[2] == "coordinate", lower[3] == "complex", lower[3] == "pattern", lower[4]};
  const bool known =
      (banner.coordinate || lower[2] == "array") &&
      (lower[3] == "real" || lower[3] == "double" || lower[3] == "integer" ||
       lower[3] == "unsigned-integer" || banner.complex || (banner.pattern && banner.coordinate)) &&
      (lower[4] == "general" || lower[4] == "symmetric" || lower[4] == "skew-symmetric" ||
       (lower[4] == "hermitian" && banner.complex));
  if (!known) return lines->Malformed("unsupported type of matrix");
  return banner;
}

std::optional<double> Double(absl::string_view word) {
  double value = 0;
  if (!absl::SimpleAtod(word, &value)) return std::nullopt;
  return value;
}

// Parses the number that starts at `words[first]`; nothing may follow it.
std::optional<std::complex<double>> Value(const Banner& banner, const Words& words, size_t first) {
  const size_t count = banner.pattern ? 0 : banner.complex ? 2 : 1;
  if (words.size() != first + count) return std::nullopt;
  if (count == 0) return 1;
  const auto real = Double(words[first]);
  const auto imaginary = count == 2 ? Double(words[first + 1]) : 0;
  if (!real.has_value() || !imaginary.has_value()) return std::nullopt;
  return std::complex<double>(*real, *imaginary);
}

// Adds an entry and its mirror entry, if the matrix is symmetric.
void Add(const Banner& banner, int64_t row, int64_t col, std::complex<double> value,
         Coordinates* matrix) {
  matrix->entries.push_back({row, col, value});
  if (banner.symmetry == "general" || row == col) return;
  if (banner.symmetry == "skew-symmetric") value = -value;
  if (banner.symmetry == "hermitian") value = std::conj(value);
  matrix->entries.push_back({col, row, value});
}

absl::StatusOr<Coordinates> ReadCoordinates(const Banner& banner, int64_t count, LineReader* lines,
                                            Coordinates matrix) {
  for (int64_t k = 0; k < count; ++k) {
    const auto words = lines->Next(/*comments=*/false);
    if (!words.ok()) return words.status();
    int64_t row = 0, col = 0;
    const bool placed = words->size() >= 2 && absl::SimpleAtoi((*words)[0], &row) &&
                        absl::SimpleAtoi((*words)[1], &col) && row >= 1 && row <= matrix.rows &&
                        col >= 1 && col <= matrix.cols;
    const auto value = placed ? Value(banner, *words, 2) : std::nullopt;
    if (!value.has_value()) return lines->Malformed("invalid entry");
    Add(banner, row - 1, col - 1, *value, &matrix);
  }
  return matrix;
}

// Reads all elements by columns; of a symmetric matrix only the lower triangle.
absl::StatusOr<std::variant<Array, Coordinates>> ReadArray(const Banner& banner, LineReader* lines,
                                                           Coordinates matrix) {
  const bool general = banner.symmetry == "general";
  Array array;
  array.dtype = Dtype::kComplex128;
  array.rows = matrix.rows;
  array.cols = matrix.cols;
  if (matrix.rows == 0) return array;
  for (int64_t j = 0; j < matrix.cols; ++j) {
    const int64_t first = general ? 0 : banner.symmetry == "skew-symmetric" ? j + 1 : j;
    for (int64_t i = first; i < matrix.rows; ++i) {
      const auto words = lines->Next(/*comments=*/false);
      if (!words.ok()) return words.status();
      const auto value = Value(banner, *words, 0);
      if (!value.has_value()) return lines->Malformed("invalid element");
      if (general) {
        const auto* bytes = reinterpret_cast<const std::byte*>(&*value);
        array.bytes.insert(array.bytes.end(), bytes, bytes + sizeof *value);
      } else {
        Add(banner, i, j, *value, &matrix);
      }
    }
  }
  if (general) return array;
  return matrix;
}

}  // namespace

absl::StatusOr<int64_t> MatrixMarketRows(const std::string& path) {
  // zlib reads plain files unchanged.
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  char buffer[4096];
  bool starts = true;  // whether a line starts: one longer than the buffer comes in pieces
  bool comment = false;
  for (; gzgets(file.get(), buffer, sizeof buffer) != nullptr;
       starts = absl::EndsWith(buffer, "\n")) {
    const absl::string_view line = absl::StripAsciiWhitespace(buffer);
    if (starts) comment = absl::StartsWith(line, "%");
    if (comment || line.empty()) continue;
    int64_t rows = 0;
    if (absl::SimpleAtoi(line.substr(0, line.find_first_of(" \t")), &rows) && rows >= 0) {
      return rows;
    }
    break;
  }
  // An empty input, for instance the output of a failed command, unless zlib reported an error.
  int error = Z_OK;
  gzerror(file.get(), &error);
  if (error == Z_OK && gztell(file.get()) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is empty. Write a Matrix Market file"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      " has no Matrix Market size line. Write the rows, columns and entries after the banner"));
}

bool MatrixMarketIsComplex(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  char buffer[4096];
  if (file == nullptr || gzgets(file.get(), buffer, sizeof buffer) == nullptr) return false;
  const std::vector<std::string> words =
      absl::StrSplit(buffer, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
  return words.size() > 3 && absl::EqualsIgnoreCase(words[3], "complex");
}

absl::StatusOr<std::variant<Array, Coordinates>> ReadMatrixMarket(const std::string& path) {
  errno = 0;
  LineReader lines(path);
  if (!lines.is_open()) return FileErrnoError(errno, absl::StrCat("cannot open ", path));
  const auto banner = ReadBanner(&lines);
  if (!banner.ok()) return banner.status();
  const auto words = lines.Next(/*comments=*/false);
  if (!words.ok()) return words.status();
  Coordinates matrix;
  int64_t count = 0;
  if (words->size() != (banner->coordinate ? 3 : 2) ||
      !absl::SimpleAtoi((*words)[0], &matrix.rows) ||
      !absl::SimpleAtoi((*words)[1], &matrix.cols) || matrix.rows < 0 || matrix.cols < 0 ||
      (banner->symmetry != "general" && matrix.rows != matrix.cols) ||
      (banner->coordinate && (!absl::SimpleAtoi((*words)[2], &count) || count < 0))) {
    return lines.Malformed("no size line");
  }
  if (!banner->coordinate) return ReadArray(*banner, &lines, std::move(matrix));
  auto coordinates = ReadCoordinates(*banner, count, &lines, std::move(matrix));
  if (!coordinates.ok()) return coordinates.status();
  return *std::move(coordinates);
}

}  // namespace crout::cli
