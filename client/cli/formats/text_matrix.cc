// SPDX-License-Identifier: Apache-2.0

#include "client/cli/formats/text_matrix.h"

#include <algorithm>
#include <charconv>
#include <complex>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

// Parses a number at the front of `text` and removes it.
std::optional<double> TakeDouble(absl::string_view* text) {
  // A digit or point must follow a plus, because from_chars would accept another sign.
  absl::string_view digits = *text;
  if (absl::ConsumePrefix(&digits, "+") && !digits.empty() && digits[0] == '-') return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec == std::errc::invalid_argument) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range) {
    // Underflow gives 0 or the nearest number; overflow is refused.
    const absl::string_view number(digits.data(), static_cast<size_t>(result.ptr - digits.data()));
    const size_t exponent = number.find_first_of("eE");
    if (exponent == absl::string_view::npos || number.substr(exponent + 1, 1) != "-") {
      return std::nullopt;
    }
    value = 0;
  }
  digits.remove_prefix(static_cast<size_t>(result.ptr - digits.data()));
  *text = digits;
  return value;
}

// "1.5", "-2j", "1.5-2j" or either in parentheses.
std::optional<std::complex<double>> ParseNumber(absl::string_view word, bool* complex) {
  if (absl::ConsumePrefix(&word, "(") && !absl::ConsumeSuffix(&word, ")")) return std::nullopt;
  const auto first = TakeDouble(&word);
  if (!first.has_value()) return std::nullopt;
  if (word.empty()) return *first;
  *complex = true;
  if (word == "j") return std::complex<double>(0, *first);
  if (word[0] != '+' && word[0] != '-') return std::nullopt;
  const auto second = TakeDouble(&word);
  if (!second.has_value() || word != "j") return std::nullopt;
  return std::complex<double>(*first, *second);
}

// False for bytes that text does not contain, such as those at the start of archives.
bool IsText(absl::string_view word) {
  return std::none_of(word.begin(), word.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7f'; });
}

// Parses a text that arrives in pieces of any size.
class Parser {
 public:
  absl::Status Add(absl::string_view piece) {
    for (size_t end; (end = piece.find('\n')) != absl::string_view::npos;) {
      absl::StrAppend(&line_, piece.substr(0, end));
      piece.remove_prefix(end + 1);
      if (absl::Status status = EndLine(); !status.ok()) return status;
    }
    absl::StrAppend(&line_, piece);
    return absl::OkStatus();
  }

  absl::StatusOr<Array> Finish() {
    if (absl::Status status = EndLine(); !status.ok()) return status;
    if (rows_ == 0)
      return absl::InvalidArgumentError(
          "the text has no numbers. Write one row of the matrix on each line");
    Array array;
    array.layout = StorageOrder::kRowMajor;
    array.rows = rows_;
    array.cols = cols_;
    if (complex_) {
      array.dtype = Dtype::kComplex128;
      array.bytes.resize(values_.size() * sizeof values_[0]);
      std::memcpy(array.bytes.data(), values_.data(), array.bytes.size());
      return array;
    }
    array.bytes.resize(values_.size() * sizeof(double));
    for (size_t i = 0; i < values_.size(); ++i) {
      const double value = values_[i].real();
      std::memcpy(&array.bytes[i * sizeof value], &value, sizeof value);
    }
    return array;
  }

 private:
  absl::Status EndLine() {
    ++number_;
    constexpr absl::string_view kSeparators = " \t\r\f\v,;";
    absl::string_view rest = absl::string_view(line_).substr(0, line_.find('#'));
    int64_t count = 0;
    for (size_t begin; (begin = rest.find_first_not_of(kSeparators)) != absl::string_view::npos;
         ++count) {
      rest.remove_prefix(begin);
      const absl::string_view word = rest.substr(0, rest.find_first_of(kSeparators));
      rest.remove_prefix(word.size());
      const auto value = ParseNumber(word, &complex_);
      if (!value.has_value() && !IsText(word)) {
        return absl::InvalidArgumentError(
            "unknown format. Use Matrix Market (plain or gzip), .npy, .npz or text. Unpack a file "
            "with another compression first");
      }
      if (!value.has_value()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "line ", number_, ": '", Printable(word.substr(0, 40)), "' is not a number"));
      }
      values_.push_back(*value);
    }
    line_.clear();
    if (count == 0) return absl::OkStatus();
    if (rows_ > 0 && count != cols_) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number_, " has ", count,
                                                     " numbers; the previous lines have ", cols_));
    }
    cols_ = count;
    ++rows_;
    return absl::OkStatus();
  }

  std::string line_;  // received part of the current line
  int64_t number_ = 0;
  int64_t rows_ = 0, cols_ = 0;
  bool complex_ = false;
  std::vector<std::complex<double>> values_;
};

}  // namespace

absl::StatusOr<Array> ReadTextMatrix(ByteInput* input) {
  Parser parser;
  std::vector<std::byte> buffer(size_t{64} << 10);
  for (;;) {
    const auto got = input->Read(absl::MakeSpan(buffer));
    if (!got.ok()) return got.status();
    if (*got == 0) return parser.Finish();
    const absl::string_view piece(reinterpret_cast<const char*>(buffer.data()), *got);
    if (absl::Status status = parser.Add(piece); !status.ok()) return status;
  }
}

}  // namespace crout::cli
