// SPDX-License-Identifier: Apache-2.0

#include "kernels/io/matrix_market_body.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/io/packed_array.h"

namespace crout {
namespace {

std::string DescribeToken(const FaultyLine& faulty) {
  return faulty.token.empty() ? "missing" : absl::StrCat(faulty.token, " given");
}

std::string Describe(const MatrixMarketHeader& header, const FaultyLine& faulty) {
  const std::string where = absl::StrCat(" at row ", faulty.row, ", column ", faulty.column);
  switch (faulty.fault) {
    case LineFault::kNone:
      break;
    case LineFault::kRow:
      return absl::StrCat("the row index must be an integer from 1 to ", header.rows, ", ",
                          DescribeToken(faulty));
    case LineFault::kColumn:
      return absl::StrCat("the column index must be an integer from 1 to ", header.columns, ", ",
                          DescribeToken(faulty));
    case LineFault::kValue:
      return absl::StrCat("the value", where, " must be a decimal number, ", DescribeToken(faulty));
    case LineFault::kNotInteger:
      return absl::StrCat("the value", where,
                          " must be an integer, because the banner declares 'integer', ",
                          DescribeToken(faulty));
    case LineFault::kNotFinite:
      return absl::StrCat("the value", where, " must be finite in float64, ",
                          DescribeToken(faulty));
    case LineFault::kImaginary:
      return absl::StrCat("the imaginary part", where, " must be a decimal number, ",
                          DescribeToken(faulty));
    case LineFault::kDiagonal:
      return absl::StrCat(
          "the entry", where,
          " is on the diagonal, which is zero in a skew-symmetric matrix. Remove the entry");
    case LineFault::kNotReal:
      return absl::StrCat("the entry", where,
                          " is on the diagonal and has an imaginary part; the diagonal of a "
                          "hermitian matrix is real");
    case LineFault::kTrailing:
      return absl::StrCat("nothing may follow the entry", where, ", ", DescribeToken(faulty));
    case LineFault::kTooLong:
      return absl::StrCat("the line is longer than ", kMaxMatrixMarketLine, " bytes");
  }
  return "";
}

absl::Status LineError(int64_t line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", what));
}

}  // namespace

void MatrixMarketBody::Add(int64_t index, ParsedSegment segment) {
  AddPending(index, Pending{std::move(segment), absl::OkStatus()});
}

void MatrixMarketBody::AddError(int64_t index, absl::Status error) {
  AddPending(index, Pending{ParsedSegment(), std::move(error)});
}

void MatrixMarketBody::AddPending(int64_t index, Pending pending) {
  if (!status_.ok()) return;
  bytes_ += pending.segment.bytes();
  pending_.emplace(index, std::move(pending));
  for (auto it = pending_.begin(); it != pending_.end() && it->first == next_ && status_.ok();
       it = pending_.erase(it), ++next_) {
    bytes_ -= it->second.segment.bytes();
    Judge(std::move(it->second));
  }
  if (!status_.ok()) Clear();
}

void MatrixMarketBody::Fail(absl::Status error) {
  if (!status_.ok()) return;
  status_ = std::move(error);
  Clear();
}

void MatrixMarketBody::Clear() {
  pending_.clear();
  entries_ = {};
  values_ = {};
  imaginary_ = {};
  bytes_ = 0;
}

std::optional<int64_t> MatrixMarketBody::FindNotReal(const ParsedSegment& segment) {
  if (header_.coordinate || header_.symmetry != MatrixMarketHeader::Symmetry::kHermitian) {
    return std::nullopt;
  }
  for (; diagonal_ < header_.rows; ++diagonal_) {
    const int64_t index = PackedDiagonal(header_, diagonal_) - count_;
    if (index >= segment.count()) break;
    if (segment.imaginary[index] != 0) return index;
  }
  return std::nullopt;
}

void MatrixMarketBody::Judge(Pending pending) {
  ParsedSegment& segment = pending.segment;
  const int64_t room = header_.entries - count_;
  if (!pending.error.ok()) {
    status_ = std::move(pending.error);
  } else if (const std::optional<int64_t> not_real = FindNotReal(segment)) {
    count_ += *not_real;
    status_ = Explain({LineFault::kNotReal, LineOfEntry(segment.text, *not_real), 0, 0, ""});
  } else if (segment.count() > room) {
    status_ = LineError(
        lines_ + LineOfEntry(segment.text, room) + 1,
        absl::StrCat("more entries than the ", header_.entries, " that the size line declares"));
  } else if (segment.faulty.has_value()) {
    count_ += segment.count();
    status_ = Explain(*segment.faulty);
  } else {
    lines_ += segment.lines;
    count_ += segment.count();
    std::string().swap(segment.text);
    bytes_ += segment.bytes();
    if (!segment.entries.empty()) entries_.push_back(std::move(segment.entries));
    if (!segment.values.empty()) values_.push_back(std::move(segment.values));
    if (!segment.imaginary.empty()) imaginary_.push_back(std::move(segment.imaginary));
  }
}

absl::Status MatrixMarketBody::Explain(const FaultyLine& faulty) const {
  const int64_t line = lines_ + faulty.line + 1;
  if (header_.coordinate || faulty.fault == LineFault::kTooLong) {
    return LineError(line, Describe(header_, faulty));
  }
  // An excess value has no position in the matrix.
  if (count_ >= header_.entries) {
    return LineError(line,
                     absl::StrCat("nothing may follow the ", header_.entries,
                                  " values that the size line declares, ", DescribeToken(faulty)));
  }
  FaultyLine placed = faulty;
  const auto [row, column] = PackedPosition(header_, count_);
  placed.row = row + 1;
  placed.column = column + 1;
  return LineError(line, Describe(header_, placed));
}

absl::Status MatrixMarketBody::Finish() const {
  if (!status_.ok() || count_ == header_.entries) return status_;
  return LineError(lines_, absl::StrCat("the text ends after ", count_, " of the ", header_.entries,
                                        " entries that the size line declares"));
}

}  // namespace crout
