// SPDX-License-Identifier: Apache-2.0

#include "kernels/io/matrix_market_header.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "kernels/io/matrix_market.h"
#include "kernels/io/packed_array.h"
#include "kernels/io/sparse_matrix.h"

namespace crout {
namespace {

using Field = MatrixMarketHeader::Field;
using Symmetry = MatrixMarketHeader::Symmetry;

std::vector<absl::string_view> Tokens(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
}

template <class T>
struct Word {
  absl::string_view word;
  T meaning;
};

// SciPy writes unsigned integers with their own field. MATLAB and older writers use "double".
constexpr Word<Field> kFields[] = {
    {"real", Field::kReal},       {"double", Field::kReal},
    {"integer", Field::kInteger}, {"unsigned-integer", Field::kInteger},
    {"pattern", Field::kPattern}, {"complex", Field::kComplex}};
constexpr Word<Symmetry> kSymmetries[] = {{"general", Symmetry::kGeneral},
                                          {"symmetric", Symmetry::kSymmetric},
                                          {"skew-symmetric", Symmetry::kSkewSymmetric},
                                          {"hermitian", Symmetry::kHermitian}};

// Sets *meaning and returns true if `words` contains `token`, ignoring case.
template <class T, size_t kCount>
bool LookUp(const Word<T> (&words)[kCount], absl::string_view token, T* meaning) {
  for (const Word<T>& word : words) {
    if (!absl::EqualsIgnoreCase(word.word, token)) continue;
    *meaning = word.meaning;
    return true;
  }
  return false;
}

}  // namespace

std::string QuoteToken(absl::string_view token) {
  constexpr size_t kShown = 32;
  return absl::StrCat("'", absl::CHexEscape(token.substr(0, kShown)),
                      token.size() > kShown ? "...'" : "'");
}

absl::Status MatrixMarketHeaderParser::Invalid(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat("line ", lines_, ": ", what));
}

absl::Status MatrixMarketHeaderParser::AddLine(absl::string_view line) {
  ++lines_;
  if (line.size() > kMaxMatrixMarketLine) {
    return Invalid(absl::StrCat("the line is longer than ", kMaxMatrixMarketLine, " bytes"));
  }
  if (lines_ == 1) return ParseBanner(line);
  const absl::string_view text = absl::StripAsciiWhitespace(line);
  if (text.empty() || text.front() == '%') return absl::OkStatus();
  return ParseSize(text);
}

absl::Status MatrixMarketHeaderParser::MissingLine() const {
  if (lines_ == 0) return absl::InvalidArgumentError("the matrix is empty: no bytes were sent");
  return absl::InvalidArgumentError(absl::StrCat("the text ends after line ", lines_,
                                                 " without a size line (rows columns [entries])"));
}

absl::Status MatrixMarketHeaderParser::ParseBanner(absl::string_view line) {
  const std::vector<absl::string_view> tokens = Tokens(line);
  if (tokens.empty() || !absl::EqualsIgnoreCase(tokens[0], "%%MatrixMarket") ||
      tokens[0].data() != line.data()) {
    return Invalid(
        "not a Matrix Market file: it must begin with "
        "'%%MatrixMarket matrix coordinate|array real|integer|pattern|complex "
        "general|symmetric|skew-symmetric|hermitian'");
  }
  if (tokens.size() != 5) {
    return Invalid(absl::StrCat("the banner has ", tokens.size(), " words; it must have 5"));
  }
  if (!absl::EqualsIgnoreCase(tokens[1], "matrix")) {
    return Invalid(absl::StrCat("unknown object ", QuoteToken(tokens[1]), ", use 'matrix'"));
  }
  header_.coordinate = absl::EqualsIgnoreCase(tokens[2], "coordinate");
  if (!header_.coordinate && !absl::EqualsIgnoreCase(tokens[2], "array")) {
    return Invalid(
        absl::StrCat("unknown format ", QuoteToken(tokens[2]), ", use 'coordinate' or 'array'"));
  }
  if (!LookUp(kFields, tokens[3], &header_.field)) {
    return Invalid(absl::StrCat("unknown field ", QuoteToken(tokens[3]),
                                ", use 'real', 'integer', 'pattern' or 'complex'"));
  }
  if (!LookUp(kSymmetries, tokens[4], &header_.symmetry)) {
    return Invalid(absl::StrCat("unknown symmetry ", QuoteToken(tokens[4]),
                                ", use 'general', 'symmetric', 'skew-symmetric' or 'hermitian'"));
  }
  return CheckBanner();
}

absl::Status MatrixMarketHeaderParser::CheckBanner() const {
  if (header_.field == Field::kPattern &&
      (!header_.coordinate || header_.symmetry == Symmetry::kSkewSymmetric)) {
    return Invalid(
        "'pattern' has no values: use it only with 'coordinate', and not with 'skew-symmetric'");
  }
  if (header_.symmetry == Symmetry::kHermitian && !header_.complex()) {
    return Invalid("'hermitian' requires 'complex'; a real matrix is 'symmetric'");
  }
  if (header_.complex() && !limits_.complex) {
    return Invalid(
        "the matrix is complex; the requested type is real. Request complex128 or complex64");
  }
  return absl::OkStatus();
}

absl::Status MatrixMarketHeaderParser::ParseSize(absl::string_view line) {
  const std::vector<absl::string_view> tokens = Tokens(line);
  const size_t needed = header_.coordinate ? 3 : 2;
  if (tokens.size() != needed) {
    return Invalid(absl::StrCat("the size line has ", tokens.size(), " numbers, ",
                                header_.coordinate ? "'coordinate' needs 3: rows columns entries"
                                                   : "'array' needs 2: rows columns"));
  }
  int64_t* const sizes[] = {&header_.rows, &header_.columns, &header_.entries};
  for (size_t i = 0; i < needed; ++i) {
    if (!absl::SimpleAtoi(tokens[i], sizes[i]) || *sizes[i] < 0) {
      return Invalid(
          absl::StrCat("the size ", QuoteToken(tokens[i]), " must be an integer from 0 to 2^63-1"));
    }
  }
  return CheckSize();
}

absl::Status MatrixMarketHeaderParser::CheckSize() {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  const int64_t max_rows = std::min(limits_.max_rows, kMax);
  const int64_t max_columns = std::min(limits_.max_columns, kMax);
  if (header_.rows > max_rows || header_.columns > max_columns) {
    return Invalid(absl::StrCat("the matrix is ", header_.rows, " by ", header_.columns,
                                "; the limit is ", max_rows, " by ", max_columns));
  }
  if (header_.symmetry != Symmetry::kGeneral && header_.rows != header_.columns) {
    return Invalid(absl::StrCat("a matrix that is not 'general' must be square, not ", header_.rows,
                                " by ", header_.columns));
  }
  if (!header_.coordinate) header_.entries = PackedCount(header_);
  if (const int64_t bytes = PeakBytes(header_); bytes > limits_.max_peak_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("line ", lines_, ": reading ", header_.entries, " entries needs ", bytes,
                     " bytes of memory; the limit is ", limits_.max_peak_bytes));
  }
  done_ = true;
  return absl::OkStatus();
}

int64_t PeakBytes(const MatrixMarketHeader& header) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  // The products below cannot overflow up to 2^56 entries.
  if (header.entries > int64_t{1} << 56) return kMax;
  const int64_t imaginary = header.complex() ? sizeof(double) : 0;
  const int64_t value = int64_t{sizeof(double)} + imaginary;
  if (!header.coordinate) {
    const int64_t full = header.rows * header.columns;
    if (full > int64_t{1} << 56) return kMax;
    return (header.entries + full) * value;
  }
  return header.entries * (int64_t{sizeof(MatrixEntry)} + imaginary) +
         static_cast<int64_t>(AssembledBytes(header));
}

}  // namespace crout
