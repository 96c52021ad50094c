// SPDX-License-Identifier: Apache-2.0

#include "kernels/io/matrix_market_entries.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/base/attributes.h"
#include "fast_float/fast_float.h"
#include "kernels/io/matrix_market_header.h"

namespace crout {
namespace {

using Field = MatrixMarketHeader::Field;
using Symmetry = MatrixMarketHeader::Symmetry;

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// The text ends in a newline, which stops every scan below before the end.
const char* SkipBlanks(const char* p) {
  while (IsBlank(*p)) ++p;
  return p;
}

const char* EndOfLine(const char* p, const char* end) {
  return static_cast<const char*>(memchr(p, '\n', end - p));
}

std::string TokenAt(const char* p) {
  const char* last = p;
  while (*last != '\n' && !IsBlank(*last)) ++last;
  return p == last ? "" : QuoteToken({p, static_cast<size_t>(last - p)});
}

// Read position. After success *at is past the parsed token; after a fault it is at the token's
// start.
struct Cursor {
  const char* at;
  const char* end;  // End of the text.
};

// Parses a 1-based index of at most `limit` into a 0-based one.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool ParseIndex(Cursor* cursor, uint64_t limit,
                                                    int32_t* index) {
  const char* p = cursor->at = SkipBlanks(cursor->at);
  if (*p == '+') ++p;
  const char* const first = p;
  uint64_t number = 0;
  // 19 digits cannot overflow. A 20th digit is rejected as trailing text.
  while (IsDigit(*p) && p - first < 19) number = number * 10 + (*p++ - '0');
  // Zero wraps around and is rejected like an index that is too large.
  if (number - 1 >= limit || !(IsBlank(*p) || *p == '\n')) return false;
  *index = static_cast<int32_t>(number - 1);
  cursor->at = p;
  return true;
}

template <Field kField>
LineFault ParseValue(Cursor* cursor, double* value) {
  const char* p = cursor->at = SkipBlanks(cursor->at);
  if (*p == '+' && p[1] != '-') ++p;
  const auto format = kField == Field::kInteger ? fast_float::chars_format::fixed
                                                : fast_float::chars_format::general;
  const auto parsed = fast_float::from_chars(p, cursor->end, *value, format);
  if (parsed.ec == std::errc::invalid_argument) return LineFault::kValue;
  if (!(IsBlank(*parsed.ptr) || *parsed.ptr == '\n')) {
    return kField == Field::kInteger ? LineFault::kNotInteger : LineFault::kValue;
  }
  if (!std::isfinite(*value)) return LineFault::kNotFinite;
  if (kField == Field::kInteger && memchr(p, '.', parsed.ptr - p) != nullptr) {
    return LineFault::kNotInteger;
  }
  cursor->at = parsed.ptr;
  return LineFault::kNone;
}

LineFault ParseImaginary(Cursor* cursor, double* value) {
  const LineFault fault = ParseValue<Field::kComplex>(cursor, value);
  return fault == LineFault::kValue ? LineFault::kImaginary : fault;
}

LineFault ParseEnd(Cursor* cursor) {
  cursor->at = SkipBlanks(cursor->at);
  return *cursor->at == '\n' ? LineFault::kNone : LineFault::kTrailing;
}

// Sets *imaginary only for `complex`.
template <Field kField>
LineFault ParseEntry(const MatrixMarketHeader& header, Cursor* cursor, MatrixEntry* entry,
                     double* imaginary) {
  *entry = {-1, -1, 1.0};
  if (!ParseIndex(cursor, header.rows, &entry->row)) return LineFault::kRow;
  if (!ParseIndex(cursor, header.columns, &entry->column)) return LineFault::kColumn;
  if (kField != Field::kPattern) {
    const LineFault fault = ParseValue<kField>(cursor, &entry->value);
    if (fault != LineFault::kNone) return fault;
  } else if (ParseEnd(cursor) != LineFault::kNone) {
    double ignored;  // Some pattern files have values, such as Pajek/Ragusa16.
    const LineFault fault = ParseValue<kField>(cursor, &ignored);
    if (fault != LineFault::kNone) return fault;
  }
  if (kField == Field::kComplex) {
    const LineFault fault = ParseImaginary(cursor, imaginary);
    if (fault != LineFault::kNone) return fault;
  }
  if (entry->row == entry->column && header.symmetry == Symmetry::kSkewSymmetric) {
    return LineFault::kDiagonal;
  }
  if (kField == Field::kComplex && entry->row == entry->column && *imaginary != 0 &&
      header.symmetry == Symmetry::kHermitian) {
    return LineFault::kNotReal;
  }
  return ParseEnd(cursor);
}

// Calls parse_line(&cursor) for every line that is neither blank nor a comment, until it returns a
// fault. Stores that fault, or a line that is too long, in segment->faulty.
template <class ParseLine>
void ForEachLine(ParsedSegment* segment, ParseLine parse_line) {
  const char* const end = segment->text.data() + segment->text.size();
  int64_t line = 0;
  for (const char* begin = segment->text.data(); begin < end; ++line) {
    Cursor cursor{SkipBlanks(begin), end};
    LineFault fault = LineFault::kNone;
    if (*cursor.at == '%') {
      cursor.at = EndOfLine(cursor.at, end);
    } else if (*cursor.at != '\n') {
      fault = parse_line(&cursor);
    }
    const char* const newline = fault == LineFault::kNone ? cursor.at : EndOfLine(cursor.at, end);
    if (newline - begin > static_cast<ptrdiff_t>(kMaxMatrixMarketLine)) {
      fault = LineFault::kTooLong;
      cursor.at = newline;
    }
    if (fault != LineFault::kNone) {
      segment->faulty = FaultyLine{fault, line, 0, 0, TokenAt(cursor.at)};
      return;
    }
    begin = newline + 1;
  }
}

template <Field kField>
void ParseCoordinate(const MatrixMarketHeader& header, ParsedSegment* segment) {
  MatrixEntry entry{-1, -1, 0};
  double imaginary = 0;
  ForEachLine(segment, [&](Cursor* cursor) {
    const LineFault fault = ParseEntry<kField>(header, cursor, &entry, &imaginary);
    if (fault != LineFault::kNone) return fault;
    segment->entries.push_back(entry);
    if (kField == Field::kComplex) segment->imaginary.push_back(imaginary);
    return LineFault::kNone;
  });
  if (segment->faulty.has_value()) {
    segment->faulty->row = entry.row + 1;
    segment->faulty->column = entry.column + 1;
  }
}

template <Field kField>
void ParseArray(ParsedSegment* segment) {
  ForEachLine(segment, [&](Cursor* cursor) {
    double value = 0;
    double imaginary = 0;
    LineFault fault = ParseValue<kField>(cursor, &value);
    if (kField == Field::kComplex && fault == LineFault::kNone) {
      fault = ParseImaginary(cursor, &imaginary);
    }
    if (fault == LineFault::kNone) fault = ParseEnd(cursor);
    if (fault != LineFault::kNone) return fault;
    segment->values.push_back(value);
    if (kField == Field::kComplex) segment->imaginary.push_back(imaginary);
    return LineFault::kNone;
  });
}

// Upper bound on the number of entries in a segment.
size_t MaxEntries(const MatrixMarketHeader& header, const ParsedSegment& segment) {
  // The shortest lines are "1 1\n" and "1\n". Counting lines alone would let blank lines claim
  // memory.
  return std::min<size_t>(segment.lines, segment.text.size() / (header.coordinate ? 4 : 2));
}

template <Field kField>
void ParseLines(const MatrixMarketHeader& header, ParsedSegment* segment) {
  const size_t most = MaxEntries(header, *segment);
  if (kField == Field::kComplex) segment->imaginary.reserve(most);
  if (header.coordinate) {
    segment->entries.reserve(most);
    ParseCoordinate<kField>(header, segment);
    segment->entries.shrink_to_fit();
  } else {
    segment->values.reserve(most);
    ParseArray<kField>(segment);
    segment->values.shrink_to_fit();
  }
  segment->imaginary.shrink_to_fit();
}

}  // namespace

ParsedSegment CountLines(std::string text) {
  ParsedSegment segment;
  segment.text = std::move(text);
  if (!segment.text.empty() && segment.text.back() != '\n') segment.text.push_back('\n');
  segment.lines = std::count(segment.text.begin(), segment.text.end(), '\n');
  return segment;
}

size_t ParseBytes(const MatrixMarketHeader& header, const ParsedSegment& segment) {
  // Twice, because entries are copied when their vectors shrink to fit.
  const size_t entry = header.coordinate ? sizeof(MatrixEntry) : sizeof(double);
  const size_t imaginary = header.complex() ? sizeof(double) : 0;
  return 2 * MaxEntries(header, segment) * (entry + imaginary);
}

void ParseSegment(const MatrixMarketHeader& header, ParsedSegment* segment) {
  switch (header.field) {
    case Field::kReal:
      return ParseLines<Field::kReal>(header, segment);
    case Field::kInteger:
      return ParseLines<Field::kInteger>(header, segment);
    case Field::kPattern:
      return ParseLines<Field::kPattern>(header, segment);
    case Field::kComplex:
      return ParseLines<Field::kComplex>(header, segment);
  }
}

int64_t LineOfEntry(const std::string& text, int64_t index) {
  int64_t line = 0;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const char first = *SkipBlanks(text.data() + begin);
    if (first != '%' && first != '\n' && index-- == 0) break;
    begin = text.find('\n', begin) + 1;
  }
  return line;
}

}  // namespace crout
