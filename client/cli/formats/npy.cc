// SPDX-License-Identifier: Apache-2.0

#include "client/cli/formats/npy.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/cli/formats/npy_header.h"

namespace crout::cli {
namespace {

static_assert(std::endian::native == std::endian::little);

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

// Calls f with each element.
template <class From, class F>
void ForEach(absl::Span<const std::byte> bytes, F f) {
  for (size_t i = 0; i < bytes.size() / sizeof(From); ++i) {
    From from;
    std::memcpy(&from, &bytes[i * sizeof from], sizeof from);
    f(from);
  }
}

// Converts elements of From to To.
template <class From, class To, class Convert>
std::vector<std::byte> Map(absl::Span<const std::byte> bytes, Convert convert) {
  std::vector<std::byte> mapped(bytes.size() / sizeof(From) * sizeof(To));
  std::byte* out = mapped.data();
  ForEach<From>(bytes, [&](From from) {
    const To to = convert(from);
    std::memcpy(out, &to, sizeof to);
    out += sizeof to;
  });
  return mapped;
}

// Calls f with a zero of the integer type of `size` bytes.
template <class F>
auto WithIntegers(bool is_signed, size_t size, F f) {
  switch (size) {
    case 1:
      return is_signed ? f(int8_t{}) : f(uint8_t{});
    case 2:
      return is_signed ? f(int16_t{}) : f(uint16_t{});
    case 4:
      return is_signed ? f(int32_t{}) : f(uint32_t{});
    default:
      return is_signed ? f(int64_t{}) : f(uint64_t{});
  }
}

// Converts integers of `size` bytes to float64.
std::vector<std::byte> FromIntegers(bool is_signed, size_t size,
                                    absl::Span<const std::byte> bytes) {
  return WithIntegers(is_signed, size, [&](auto zero) {
    using From = decltype(zero);
    return Map<From, double>(bytes, [](From value) { return static_cast<double>(value); });
  });
}

// An array with the elements of the file in this machine's byte order.
struct Raw {
  NpyHeaderFields header;
  std::vector<std::byte> bytes;

  const NpyDescr& descr() const { return *header.descr; }
  const std::vector<int64_t>& shape() const { return *header.shape; }
};

// Reverses the bytes of parts of `part` bytes.
void ReverseParts(size_t part, std::vector<std::byte>* bytes) {
  for (size_t at = 0; at + part <= bytes->size(); at += part) {
    std::reverse(bytes->data() + at, bytes->data() + at + part);
  }
}

// Reads the elements after a header; nothing may follow them.
absl::StatusOr<Raw> ReadElements(ByteInput* input, NpyHeaderFields header) {
  __int128 elements = 1;
  for (const int64_t size : *header.shape) {
    elements *= size;
    // An int64_t must also hold the bytes of the widest converted form.
    if (elements > std::numeric_limits<int64_t>::max() / 16) {
      return MalformedNpy(absl::StrCat("its ", absl::StrJoin(*header.shape, " x "),
                                       " elements do not fit into memory"));
    }
  }
  const NpyDescr& descr = *header.descr;
  auto bytes =
      ReadNpyBytes(input, static_cast<int64_t>(elements) * static_cast<int64_t>(descr.size));
  if (!bytes.ok()) return bytes.status();
  std::byte after;
  const auto more = input->Read(absl::MakeSpan(&after, 1));
  if (!more.ok()) return more.status();
  if (*more > 0) return MalformedNpy("it has data after the last element");
  const size_t part = descr.kind == 'U' ? 4 : descr.kind == 'c' ? descr.size / 2 : descr.size;
  if (descr.big_endian && part > 1 && descr.kind != 'S') ReverseParts(part, &*bytes);
  return Raw{std::move(header), *std::move(bytes)};
}

// Converts elements to a type of the contract.
void Import(const NpyDescr& descr, Array* array) {
  if (descr.kind == 'c') {
    array->dtype = descr.size == 8 ? Dtype::kComplex64 : Dtype::kComplex128;
  } else if (descr.kind == 'f' && descr.size == 2) {
    array->bytes = Map<uint16_t, float>(array->bytes, FromHalf);
    array->dtype = Dtype::kFloat32;
  } else if (descr.kind == 'f') {
    array->dtype = descr.size == 4 ? Dtype::kFloat32 : Dtype::kFloat64;
  } else {
    array->bytes = FromIntegers(descr.kind == 'i', descr.size, array->bytes);
    array->dtype = Dtype::kFloat64;
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
  // Data starts at a multiple of 64 bytes, after magic, version, length, header and a newline.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  const char length[] = {static_cast<char>(header.size() % 256),
                         static_cast<char>(header.size() / 256)};
  return absl::StrCat(kNpyMagic, absl::string_view("\x01\x00", 2), absl::string_view(length, 2),
                      header);
}

}  // namespace

absl::StatusOr<Array> ReadNpy(ByteInput* input) {
  auto header = ReadNpyHeader(input);
  if (!header.ok()) return header.status();
  const size_t dimensions = header->shape->size();
  if (dimensions < 1 || dimensions > 2) {
    return MalformedNpy(absl::StrCat("an array of ", dimensions, " dimensions is not a matrix"));
  }
  if (header->descr->IsText()) return NoNumbers(header->descr->text);
  auto raw = ReadElements(input, *std::move(header));
  if (!raw.ok()) return raw.status();
  Array array;
  array.rows = raw->shape()[0];
  array.cols = dimensions == 2 ? raw->shape()[1] : 1;
  array.layout = *raw->header.fortran_order ? StorageOrder::kColumnMajor : StorageOrder::kRowMajor;
  array.bytes = std::move(raw->bytes);
  Import(raw->descr(), &array);
  return array;
}

absl::StatusOr<std::vector<int64_t>> ReadNpyIntegers(ByteInput* input) {
  auto header = ReadNpyHeader(input);
  if (!header.ok()) return header.status();
  const char kind = header->descr->kind;
  if (header->shape->size() != 1 || (kind != 'i' && kind != 'u')) {
    return MalformedNpy("it is not a vector of integers");
  }
  const auto raw = ReadElements(input, *std::move(header));
  if (!raw.ok()) return raw.status();
  std::vector<int64_t> integers;
  bool fits = true;
  WithIntegers(kind == 'i', raw->descr().size, [&](auto zero) {
    using From = decltype(zero);
    ForEach<From>(raw->bytes, [&](From value) {
      fits &= std::in_range<int64_t>(value);
      integers.push_back(static_cast<int64_t>(value));
    });
  });
  if (!fits) return MalformedNpy("it has an integer above 2^63 - 1");
  return integers;
}

absl::StatusOr<std::string> ReadNpyWord(ByteInput* input) {
  auto header = ReadNpyHeader(input);
  if (!header.ok()) return header.status();
  if (!header->shape->empty() || !header->descr->IsText())
    return MalformedNpy("it is not a string");
  const auto raw = ReadElements(input, *std::move(header));
  if (!raw.ok()) return raw.status();
  const size_t width = raw->descr().kind == 'U' ? 4 : 1;
  std::string word;
  for (size_t at = 0; at < raw->bytes.size(); at += width) {
    const auto rest = absl::MakeConstSpan(raw->bytes).subspan(at + 1, width - 1);
    const auto first = std::to_integer<unsigned char>(raw->bytes[at]);
    if (first >= 128 || absl::c_any_of(rest, [](std::byte b) { return b != std::byte{0}; })) {
      return MalformedNpy("its text is not ASCII");
    }
    word += static_cast<char>(first);
  }
  while (!word.empty() && word.back() == '\0') word.pop_back();
  return word;
}

std::string NpyHeader(Element element, int64_t rows, int64_t cols) {
  return HeaderOf(element, absl::StrCat(rows, ", ", cols));
}

std::string NpyVectorHeader(Element element, int64_t size) {
  return HeaderOf(element, absl::StrCat(size, ","));
}

}  // namespace crout::cli
