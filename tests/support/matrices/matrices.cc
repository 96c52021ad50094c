// SPDX-License-Identifier: Apache-2.0

#include "tests/support/matrices/matrices.h"

#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/util/status_macros.h"

namespace crout::testing {
namespace {

absl::StatusOr<std::string> ReadText(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");  // also reads uncompressed files
  if (file == nullptr) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  std::string text;
  char block[1 << 16];
  int count;
  while ((count = gzread(file, block, sizeof(block))) > 0) text.append(block, count);
  gzclose(file);
  if (count < 0) return absl::DataLossError(absl::StrCat("cannot inflate ", path));
  return text;
}

struct Header {
  bool coordinate = false;
  bool pattern = false;
  bool complex = false;
  bool hermitian = false;
  double mirror = 0;  // A(j, i) = mirror * A(i, j); 0 for a general matrix
  int64_t n = 0;
  int64_t nnz = 0;
};

absl::StatusOr<Header> ReadHeader(std::istream& in) {
  std::string line;
  std::getline(in, line);
  const std::string banner = absl::AsciiStrToLower(line);
  Header header;
  header.coordinate = absl::StrContains(banner, "coordinate");
  header.pattern = absl::StrContains(banner, "pattern");
  header.complex = absl::StrContains(banner, "complex");
  header.hermitian = absl::StrContains(banner, "hermitian");
  header.mirror = absl::StrContains(banner, "skew")                       ? -1
                  : absl::StrContains(banner, "symm") || header.hermitian ? 1
                                                                          : 0;
  while (std::getline(in, line)) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (!text.empty() && text[0] != '%') break;
  }
  std::istringstream sizes(line);
  int64_t cols = 0;
  sizes >> header.n >> cols;
  if (header.coordinate) sizes >> header.nnz;
  if (!sizes || cols != header.n) return absl::InvalidArgumentError("not a square matrix");
  return header;
}

HostMatrix ReadCoordinate(std::istream& in, const Header& header) {
  HostMatrix a(header.n * header.n, 0.0);
  for (int64_t k = 0; k < header.nnz; ++k) {
    int64_t i = 0;
    int64_t j = 0;
    double v = 1;
    in >> i >> j;
    if (!header.pattern) in >> v;
    a[i - 1 + (j - 1) * header.n] += v;
    if (header.mirror != 0 && i != j) a[j - 1 + (i - 1) * header.n] += header.mirror * v;
  }
  return a;
}

HostMatrix ReadArray(std::istream& in, const Header& header) {
  HostMatrix a(header.n * header.n, 0.0);
  for (int64_t j = 0; j < header.n; ++j) {
    const int64_t first = header.mirror == 0 ? 0 : header.mirror > 0 ? j : j + 1;
    for (int64_t i = first; i < header.n; ++i) {
      in >> a[i + j * header.n];
      if (header.mirror != 0 && i != j) a[j + i * header.n] = header.mirror * a[i + j * header.n];
    }
  }
  return a;
}

std::vector<SparseEntry> ReadEntries(std::istream& in, const Header& header) {
  std::vector<SparseEntry> entries;
  for (int64_t k = 0; k < header.nnz; ++k) {
    int32_t i = 0;
    int32_t j = 0;
    double re = 1;
    double im = 0;
    in >> i >> j;
    if (!header.pattern) in >> re;
    if (header.complex) in >> im;
    entries.push_back({i - 1, j - 1, {re, im}});
    if (header.mirror == 0 || i == j) continue;
    const std::complex<double> mirrored(re, header.hermitian ? -im : im);
    entries.push_back({j - 1, i - 1, header.mirror * mirrored});
  }
  return entries;
}

absl::StatusOr<std::istringstream> OpenMatrix(const RealMatrix& matrix) {
  const std::optional<std::string> directory = MatricesDirectory();
  if (!directory) return absl::NotFoundError("no shared matrices");
  CROUT_ASSIGN_OR_RETURN(std::string text, ReadText(absl::StrCat(*directory, "/", matrix.file)));
  return std::istringstream(std::move(text));
}

std::optional<RealMatrix> ParseIndexLine(const std::string& line) {
  const std::vector<std::string> cells = absl::StrSplit(line, '\t');
  RealMatrix matrix;
  if (cells.size() < 7 || !absl::SimpleAtoi(cells[2], &matrix.n) ||
      !absl::SimpleAtoi(cells[3], &matrix.nnz)) {
    return std::nullopt;  // the title line, or a file without a matrix
  }
  matrix.file = cells[0];
  matrix.field = cells[4];
  matrix.symmetry = cells[5];
  if (!absl::SimpleAtod(cells[6], &matrix.condition)) matrix.condition = 0;
  if (cells.size() > 7) matrix.note = cells[7];
  return matrix;
}

}  // namespace

std::optional<std::string> MatricesDirectory() {
  // No test changes the environment while another thread reads it.
  const char* chosen = std::getenv("CROUT_MATRICES");  // NOLINT(concurrency-mt-unsafe)
  const std::string directory = chosen != nullptr ? chosen : CROUT_MATRICES_DEFAULT;
  if (!std::filesystem::exists(directory + "/INDEX.tsv")) return std::nullopt;
  return directory;
}

std::vector<RealMatrix> RealMatrixIndex() {
  std::vector<RealMatrix> index;
  const std::optional<std::string> directory = MatricesDirectory();
  if (!directory) return index;
  std::ifstream file(*directory + "/INDEX.tsv");
  for (std::string line; std::getline(file, line);) {
    if (std::optional<RealMatrix> matrix = ParseIndexLine(line)) index.push_back(*matrix);
  }
  return index;
}

absl::StatusOr<HostMatrix> ReadRealMatrix(const RealMatrix& matrix) {
  CROUT_ASSIGN_OR_RETURN(std::istringstream in, OpenMatrix(matrix));
  CROUT_ASSIGN_OR_RETURN(const Header header, ReadHeader(in));
  if (header.complex) return absl::UnimplementedError("complex matrix");
  HostMatrix a = header.coordinate ? ReadCoordinate(in, header) : ReadArray(in, header);
  if (!in) return absl::DataLossError(absl::StrCat(matrix.file, " is truncated"));
  return a;
}

absl::StatusOr<std::vector<SparseEntry>> ReadSparseMatrix(const RealMatrix& matrix) {
  CROUT_ASSIGN_OR_RETURN(std::istringstream in, OpenMatrix(matrix));
  CROUT_ASSIGN_OR_RETURN(const Header header, ReadHeader(in));
  std::vector<SparseEntry> entries;
  if (header.coordinate) {
    entries = ReadEntries(in, header);
  } else if (header.complex) {
    return absl::UnimplementedError("complex array");
  } else {
    const HostMatrix a = ReadArray(in, header);
    for (int64_t e = 0; e < std::ssize(a); ++e) {
      if (a[e] == 0) continue;
      entries.push_back(
          {static_cast<int32_t>(e % header.n), static_cast<int32_t>(e / header.n), a[e]});
    }
  }
  if (!in) return absl::DataLossError(absl::StrCat(matrix.file, " is truncated"));
  return entries;
}

}  // namespace crout::testing
