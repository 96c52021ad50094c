// SPDX-License-Identifier: Apache-2.0

#include "client/cli/formats/npy_header.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace crout::cli {
namespace {

// NumPy's own limit for headers of untrusted files.
constexpr int64_t kMaxHeaderBytes = 10'000;

constexpr int kMaxWordLength = 16;  // characters

absl::StatusOr<NpyDescr> ParseDescr(absl::string_view text) {
  NpyDescr descr;
  int size = 0;
  if (text.size() < 3 || !absl::SimpleAtoi(text.substr(2), &size)) {
    return MalformedNpy(absl::StrCat("the type '", text, "' is not a number"));
  }
  descr.kind = text[1];
  descr.size = static_cast<size_t>(size);
  descr.big_endian = text[0] == '>';
  const absl::string_view known[] = {"f2", "f4", "f8", "c8", "c16", "i1", "i2",
                                     "i4", "i8", "u1", "u2", "u4",  "u8", "b1"};
  const bool is_word = descr.IsText() && size >= 0 && size <= kMaxWordLength;
  const bool is_known =
      std::find(std::begin(known), std::end(known), text.substr(1)) != std::end(known);
  if (!absl::StrContains("<>|=", text.substr(0, 1)) || !(is_known || is_word)) {
    return NoNumbers(text);
  }
  descr.text = std::string(text);
  if (descr.kind == 'U') descr.size *= 4;  // UTF-32
  return descr;
}

// The header is a literal of a Python dict with three keys. Each function consumes text from the
// front.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : rest_(text) {}

  absl::StatusOr<NpyHeaderFields> Parse() {
    NpyHeaderFields header;
    if (!Take("{")) return MalformedNpy("its header is not a dictionary");
    while (!Take("}")) {
      const auto key = String();
      if (!key.has_value() || !Take(":")) return MalformedNpy("its header lacks a key");
      if (absl::Status status = Value(*key, &header); !status.ok()) return status;
      if (!Take(",") && !Peek("}")) return MalformedNpy("its header lacks a comma");
    }
    SkipSpaces();
    if (!rest_.empty()) return MalformedNpy("its header has text after the dictionary");
    if (!header.descr || !header.fortran_order || !header.shape) {
      return MalformedNpy("its header lacks descr, fortran_order or shape");
    }
    return header;
  }

 private:
  absl::Status Value(absl::string_view key, NpyHeaderFields* header) {
    if (key == "descr" && !header->descr) {
      const auto text = String();
      if (!text.has_value()) return MalformedNpy("its elements are records, not numbers");
      const auto descr = ParseDescr(*text);
      if (!descr.ok()) return descr.status();
      header->descr = *descr;
    } else if (key == "fortran_order" && !header->fortran_order) {
      header->fortran_order = Take("True");
      if (!*header->fortran_order && !Take("False")) {
        return MalformedNpy("fortran_order is neither True nor False");
      }
    } else if (key == "shape" && !header->shape) {
      header->shape = Shape();
      if (!header->shape) return MalformedNpy("its shape is not a tuple of sizes");
    } else {
      return MalformedNpy("its header has a duplicate or unknown key");
    }
    return absl::OkStatus();
  }

  std::optional<std::vector<int64_t>> Shape() {
    std::vector<int64_t> shape;
    if (!Take("(")) return std::nullopt;
    while (!Take(")")) {
      SkipSpaces();
      const size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
      int64_t size = 0;
      if (!absl::SimpleAtoi(rest_.substr(0, digits), &size)) return std::nullopt;
      rest_.remove_prefix(digits);
      shape.push_back(size);
      if (!Take(",") && !Peek(")")) return std::nullopt;
    }
    return shape;
  }

  // Parses a string in single or double quotes; the names of types need no escapes.
  std::optional<absl::string_view> String() {
    SkipSpaces();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return std::nullopt;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == absl::string_view::npos) return std::nullopt;
    const absl::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool Take(absl::string_view token) {
    SkipSpaces();
    return absl::ConsumePrefix(&rest_, token);
  }
  bool Peek(absl::string_view token) {
    SkipSpaces();
    return absl::StartsWith(rest_, token);
  }
  void SkipSpaces() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  absl::string_view rest_;
};

absl::string_view AsText(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

absl::Status MalformedNpy(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("invalid .npy file: ", why));
}

absl::Status NoNumbers(absl::string_view type) {
  return MalformedNpy(absl::StrCat("unsupported element type '", type, "'"));
}

absl::StatusOr<NpyHeaderFields> ReadNpyHeader(ByteInput* input) {
  const auto start = ReadNpyBytes(input, 8);
  if (!start.ok()) return start.status();
  const auto version = std::to_integer<int>((*start)[6]);
  if (AsText(*start).substr(0, 6) != kNpyMagic || version < 1 || version > 3) {
    return MalformedNpy("it does not start as version 1, 2 or 3");
  }
  const auto length_bytes = ReadNpyBytes(input, version == 1 ? 2 : 4);
  if (!length_bytes.ok()) return length_bytes.status();
  int64_t length = 0;
  for (size_t i = length_bytes->size(); i-- > 0;) {
    length = length * 256 + std::to_integer<int>((*length_bytes)[i]);
  }
  if (length > kMaxHeaderBytes) {
    return MalformedNpy(absl::StrCat("its header of ", length, " bytes exceeds the limit of ",
                                     kMaxHeaderBytes, " bytes"));
  }
  const auto text = ReadNpyBytes(input, length);
  if (!text.ok()) return text.status();
  return HeaderParser(AsText(*text)).Parse();
}

absl::StatusOr<std::vector<std::byte>> ReadNpyBytes(ByteInput* input, int64_t size) {
  auto bytes = ReadUpTo(input, size);
  if (!bytes.ok()) return bytes;
  if (static_cast<int64_t>(bytes->size()) < size) {
    return MalformedNpy(absl::StrCat("it ends after ", bytes->size(), " of ", size, " bytes"));
  }
  return bytes;
}

}  // namespace crout::cli
