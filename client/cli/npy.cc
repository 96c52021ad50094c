#include "client/cli/npy.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace crout::cli {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr absl::string_view kMagic("\x93NUMPY", 6);
// NumPy itself reads no longer ones unless it is told to trust the file.
constexpr int64_t kLongestHeader = 10'000;

absl::Status Malformed(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a usable .npy file: ", why));
}

// The type of an element in the file.
struct Descr {
  char kind = 0;  // 'f', 'c', 'i', 'u', 'b'
  size_t size = 0;
  bool big_endian = false;
};

struct Header {
  std::optional<Descr> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

absl::StatusOr<Descr> ParseDescr(absl::string_view text) {
  Descr descr;
  int size = 0;
  if (text.size() < 3 || !absl::SimpleAtoi(text.substr(2), &size)) {
    return Malformed(absl::StrCat("the type '", text, "' is no number"));
  }
  descr.kind = text[1];
  descr.size = static_cast<size_t>(size);
  descr.big_endian = text[0] == '>';
  const absl::string_view known[] = {"f2", "f4", "f8", "c8", "c16", "i1", "i2",
                                     "i4", "i8", "u1", "u2", "u4",  "u8", "b1"};
  if (!absl::StrContains("<>|=", text.substr(0, 1)) ||
      std::find(std::begin(known), std::end(known), text.substr(1)) == std::end(known)) {
    return Malformed(absl::StrCat("no matrix has elements of type '", text, "'"));
  }
  return descr;
}

// The header is a literal of a Python dict with three keys. Each function takes from the front.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : rest_(text) {}

  absl::StatusOr<Header> Parse() {
    Header header;
    if (!Take("{")) return Malformed("its header is no dictionary");
    while (!Take("}")) {
      const auto key = String();
      if (!key.has_value() || !Take(":"))
        return Malformed("its header has no key where one is due");
      if (absl::Status status = Value(*key, &header); !status.ok()) return status;
      if (!Take(",") && !Peek("}")) return Malformed("its header lacks a comma");
    }
    SkipSpaces();
    if (!rest_.empty()) return Malformed("something follows the dictionary in its header");
    if (!header.descr || !header.fortran_order || !header.shape) {
      return Malformed("its header lacks descr, fortran_order or shape");
    }
    return header;
  }

 private:
  absl::Status Value(absl::string_view key, Header* header) {
    if (key == "descr" && !header->descr) {
      const auto text = String();
      if (!text.has_value()) return Malformed("its elements are no numbers, but records");
      const auto descr = ParseDescr(*text);
      if (!descr.ok()) return descr.status();
      header->descr = *descr;
    } else if (key == "fortran_order" && !header->fortran_order) {
      header->fortran_order = Take("True");
      if (!*header->fortran_order && !Take("False")) {
        return Malformed("fortran_order is neither True nor False");
      }
    } else if (key == "shape" && !header->shape) {
      header->shape = Shape();
      if (!header->shape) return Malformed("its shape is no tuple of sizes");
    } else {
      return Malformed("its header has a key twice, or one that is not known");
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

  // In single or double quotes; NumPy escapes nothing in what can be a number's type.
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

absl::StatusOr<std::vector<std::byte>> ReadExactly(ByteInput* input, int64_t size) {
  auto bytes = ReadUpTo(input, size);
  if (!bytes.ok()) return bytes;
  if (static_cast<int64_t>(bytes->size()) < size) {
    return Malformed(absl::StrCat("it ends after ", bytes->size(), " of ", size, " bytes"));
  }
  return bytes;
}

absl::string_view AsText(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

absl::StatusOr<Header> ReadHeader(ByteInput* input) {
  const auto start = ReadExactly(input, 8);
  if (!start.ok()) return start.status();
  const auto version = std::to_integer<int>((*start)[6]);
  if (AsText(*start).substr(0, 6) != kMagic || version < 1 || version > 3) {
    return Malformed("it does not begin as one of version 1, 2 or 3");
  }
  const auto length_bytes = ReadExactly(input, version == 1 ? 2 : 4);
  if (!length_bytes.ok()) return length_bytes.status();
  int64_t length = 0;
  for (size_t i = length_bytes->size(); i-- > 0;) {
    length = length * 256 + std::to_integer<int>((*length_bytes)[i]);
  }
  if (length > kLongestHeader) {
    return Malformed(absl::StrCat("its header of ", length, " bytes is longer than a matrix's"));
  }
  const auto text = ReadExactly(input, length);
  if (!text.ok()) return text.status();
  return HeaderParser(AsText(*text)).Parse();
}

float FromHalf(uint16_t bits) {
  const auto sign = static_cast<uint32_t>(bits >> 15) << 31;
  const uint32_t exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent == 0) {  // subnormal: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) / 16777216.0F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

// Elements of From as To.
template <class From, class To, class Convert>
std::vector<std::byte> Map(absl::Span<const std::byte> bytes, Convert convert) {
  std::vector<std::byte> mapped(bytes.size() / sizeof(From) * sizeof(To));
  for (size_t i = 0; i < bytes.size() / sizeof(From); ++i) {
    From from;
    std::memcpy(&from, &bytes[i * sizeof from], sizeof from);
    const To to = convert(from);
    std::memcpy(&mapped[i * sizeof to], &to, sizeof to);
  }
  return mapped;
}

// Integers of `size` bytes as float64.
std::vector<std::byte> FromIntegers(bool is_signed, size_t size,
                                    absl::Span<const std::byte> bytes) {
  const auto as = [&](auto zero) {
    using From = decltype(zero);
    return Map<From, double>(bytes, [](From value) { return static_cast<double>(value); });
  };
  switch (size) {
    case 1:
      return is_signed ? as(int8_t{}) : as(uint8_t{});
    case 2:
      return is_signed ? as(int16_t{}) : as(uint16_t{});
    case 4:
      return is_signed ? as(int32_t{}) : as(uint32_t{});
    default:
      return is_signed ? as(int64_t{}) : as(uint64_t{});
  }
}

// Brings elements into a type of the contract and this machine's byte order.
void Import(const Descr& descr, Array* array) {
  const size_t part = descr.kind == 'c' ? descr.size / 2 : descr.size;
  if (descr.big_endian && part > 1) {
    for (size_t at = 0; at + part <= array->bytes.size(); at += part) {
      std::reverse(&array->bytes[at], &array->bytes[at] + part);
    }
  }
  if (descr.kind == 'c') {
    array->dtype = descr.size == 8 ? v1::DTYPE_COMPLEX64 : v1::DTYPE_COMPLEX128;
  } else if (descr.kind == 'f' && descr.size == 2) {
    array->bytes = Map<uint16_t, float>(array->bytes, FromHalf);
    array->dtype = v1::DTYPE_FLOAT32;
  } else if (descr.kind == 'f') {
    array->dtype = descr.size == 4 ? v1::DTYPE_FLOAT32 : v1::DTYPE_FLOAT64;
  } else {
    array->bytes = FromIntegers(descr.kind == 'i', descr.size, array->bytes);
    array->dtype = v1::DTYPE_FLOAT64;
  }
}

std::string HeaderOf(Element element, const std::string& shape) {
  const char* descr = "<f8";
  switch (element) {
    case Element::kFloat32:
      descr = "<f4";
      break;
    case Element::kComplex64:
      descr = "<c8";
      break;
    case Element::kComplex128:
      descr = "<c16";
      break;
    case Element::kInt64:
      descr = "<i8";
      break;
    case Element::kFloat64:
      break;
  }
  std::string header =
      absl::StrCat("{'descr': '", descr, "', 'fortran_order': True, 'shape': (", shape, "), }");
  // Data starts at a multiple of 64, after magic, version, length, header and a newline.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  const char length[] = {static_cast<char>(header.size() % 256),
                         static_cast<char>(header.size() / 256)};
  return absl::StrCat(kMagic, absl::string_view("\x01\x00", 2), absl::string_view(length, 2),
                      header);
}

}  // namespace

absl::StatusOr<Array> ReadNpy(ByteInput* input) {
  const auto header = ReadHeader(input);
  if (!header.ok()) return header.status();
  const std::vector<int64_t>& shape = *header->shape;
  if (shape.empty() || shape.size() > 2) {
    return Malformed(absl::StrCat("an array of ", shape.size(), " dimensions is no matrix"));
  }
  Array array;
  array.rows = shape[0];
  array.cols = shape.size() == 2 ? shape[1] : 1;
  array.layout = *header->fortran_order ? v1::LAYOUT_COLUMN_MAJOR : v1::LAYOUT_ROW_MAJOR;
  // Its widest form, too, is counted by an int64_t.
  const __int128 elements = static_cast<__int128>(array.rows) * array.cols;
  if (elements > std::numeric_limits<int64_t>::max() / 16) {
    return Malformed(absl::StrCat("no memory holds ", array.rows, " x ", array.cols, " elements"));
  }
  const auto size = static_cast<int64_t>(elements) * static_cast<int64_t>(header->descr->size);
  auto bytes = ReadExactly(input, size);
  if (!bytes.ok()) return bytes.status();
  array.bytes = *std::move(bytes);
  std::byte after;
  const auto more = input->Read(absl::MakeSpan(&after, 1));
  if (!more.ok()) return more.status();
  if (*more > 0) return Malformed("something follows its last element");
  Import(*header->descr, &array);
  return array;
}

std::string NpyHeader(Element element, int64_t rows, int64_t cols) {
  return HeaderOf(element, absl::StrCat(rows, ", ", cols));
}

std::string NpyVectorHeader(Element element, int64_t size) {
  return HeaderOf(element, absl::StrCat(size, ","));
}

}  // namespace crout::cli
