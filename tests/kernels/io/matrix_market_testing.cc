// SPDX-License-Identifier: Apache-2.0

#include "tests/kernels/io/matrix_market_testing.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/io/matrix_market_reader.h"
#include "tests/support/matrices/gallery.h"

namespace crout {

using testing::SameBits;

ReadResult ReadPieces(std::string_view text, const std::function<size_t()>& next_size,
                      const MatrixMarketLimits& limits, ThreadPool* pool) {
  MatrixMarketReader reader(limits, pool);
  ReadResult result;
  while (!text.empty() && result.status.ok()) {
    // Copies the piece to a block of its length, so that AddressSanitizer detects reads beyond it.
    const std::string_view view = text.substr(0, std::max<size_t>(1, next_size()));
    const std::vector<char> piece(view.begin(), view.end());
    text.remove_prefix(piece.size());
    result.status = reader.Append(piece);
  }
  if (result.status.ok()) result.status = reader.Finish();
  result.header = reader.header();
  if (!result.status.ok()) return result;
  result.sparse = reader.TakeSparse();
  result.dense = reader.TakeDense();
  result.dense_imaginary = reader.TakeDenseImaginary();
  return result;
}

ReadResult ReadWhole(std::string_view text, const MatrixMarketLimits& limits, ThreadPool* pool) {
  return ReadPieces(
      text, [&] { return text.size(); }, limits, pool);
}

std::string Difference(const ReadResult& a, const ReadResult& b) {
  if (a.status != b.status) {
    return absl::StrCat("status: ", a.status.ToString(), " / ", b.status.ToString());
  }
  if (!a.status.ok()) return "";
  if (a.header != b.header) return "header";
  if (a.sparse.column_start != b.sparse.column_start) return "column_start";
  if (a.sparse.row != b.sparse.row) return "row";
  if (!SameBits(a.sparse.value, b.sparse.value)) return "value";
  if (!SameBits(a.sparse.imaginary, b.sparse.imaginary)) return "imaginary";
  if (!SameBits(a.dense, b.dense)) return "dense";
  if (!SameBits(a.dense_imaginary, b.dense_imaginary)) return "dense_imaginary";
  return "";
}

NaiveMatrix ReadNaively(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  absl::AsciiStrToLower(&line);
  const bool coordinate = line.find("coordinate") != std::string::npos;
  const bool pattern = line.find("pattern") != std::string::npos;
  const bool skew = line.find("skew-symmetric") != std::string::npos;
  const bool complex = line.find("complex") != std::string::npos;
  const bool hermitian = line.find("hermitian") != std::string::npos;
  const bool mirrored = hermitian || line.find("symmetric") != std::string::npos;
  NaiveMatrix matrix;
  bool have_size = false;
  int64_t row = 0;
  int64_t column = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word[0] == '%') continue;
    if (!have_size) {
      matrix.rows = std::stoll(word);
      words >> matrix.columns;
      have_size = true;
      row = skew ? 1 : 0;
      continue;
    }
    if (coordinate) {
      row = std::stoll(word) - 1;
      words >> column;
      --column;
      words >> word;
    }
    std::complex<double> value = pattern ? 1.0 : std::strtod(word.c_str(), nullptr);
    if (complex && words >> word) value.imag(std::strtod(word.c_str(), nullptr));
    matrix.entries[{column, row}] += value;
    if (mirrored && row != column) {
      matrix.entries[{row, column}] += skew ? -value : hermitian ? std::conj(value) : value;
    }
    if (!coordinate && ++row == matrix.rows) {
      ++column;
      row = skew ? column + 1 : mirrored ? column : 0;
    }
  }
  return matrix;
}

namespace {

using Complex = std::complex<double>;

// Returns the entries of a sparse or dense result in the order of NaiveMatrix.
std::vector<std::pair<std::pair<int64_t, int64_t>, Complex>> Entries(const ReadResult& result) {
  std::vector<std::pair<std::pair<int64_t, int64_t>, Complex>> entries;
  if (!result.header->coordinate) {
    const int64_t rows = result.header->rows;
    const bool skew = result.header->symmetry == MatrixMarketHeader::Symmetry::kSkewSymmetric;
    for (int64_t i = 0; i < static_cast<int64_t>(result.dense.size()); ++i) {
      const Complex value(result.dense[i],
                          result.header->complex() ? result.dense_imaginary[i] : 0);
      // A skew-symmetric file omits its diagonal, which is zero.
      if (skew && i / rows == i % rows && value == 0.0) continue;
      entries.push_back({{i / rows, i % rows}, value});
    }
    return entries;
  }
  const SparseMatrix& sparse = result.sparse;
  for (int64_t j = 0; j < sparse.columns; ++j) {
    for (int64_t i = sparse.column_start[j]; i < sparse.column_start[j + 1]; ++i) {
      entries.push_back({{j, sparse.row[i]}, sparse.Value<Complex>(i)});
    }
  }
  return entries;
}

}  // namespace

std::string Difference(const ReadResult& result, const NaiveMatrix& naive) {
  if (!result.status.ok()) return result.status.ToString();
  if (result.header->rows != naive.rows || result.header->columns != naive.columns) return "shape";
  const auto entries = Entries(result);
  if (entries.size() != naive.entries.size()) {
    return absl::StrCat(entries.size(), " entries / ", naive.entries.size());
  }
  size_t i = 0;
  for (const auto& [at, value] : naive.entries) {
    const auto& entry = entries[i++];
    if (entry.first != at || entry.second != value) {
      return absl::StrFormat("entry (%d, %d) = %.17g, %.17g / (%d, %d) = %.17g, %.17g",
                             entry.first.second, entry.first.first, entry.second.real(),
                             entry.second.imag(), at.second, at.first, value.real(), value.imag());
    }
  }
  return "";
}

std::string RandomMatrixText(int n, int entries, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> index(1, n);
  std::normal_distribution<double> normal;
  std::string text = "%%MatrixMarket matrix coordinate real general\n% random\n";
  absl::StrAppend(&text, n, " ", n, " ", entries, "\n");
  const char* const formats[] = {"%.17g\n", "%.16e\n", "\t%+.3f \r\n", "%.5E\n", "  %.1f\r\n"};
  for (int i = 0; i < entries; ++i) {
    char value[64];
    snprintf(value, sizeof value, formats[random() % 5], normal(random));
    absl::StrAppend(&text, index(random), " ", index(random), " ", value);
    if (random() % 50 == 0) text += "% a comment between entries\n";
    if (random() % 50 == 0) text += " \t\n";
  }
  return text;
}

}  // namespace crout
