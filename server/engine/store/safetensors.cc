// SPDX-License-Identifier: Apache-2.0

#include "server/engine/store/safetensors.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/digest.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "nlohmann/json.hpp"

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::string_view kChecksumKey = "checksum";
// The header begins with this text and the 16 digits of the checksum, which is computed with zeros
// in place of the digits.
constexpr std::string_view kHeaderStart = R"({"__metadata__":{"checksum":")";
constexpr std::string_view kNoDigits = "0000000000000000";

constexpr size_t kMaxTensors = 64;
constexpr size_t kMaxRank = 3;

struct TensorTypeTraits {
  std::string_view name;
  size_t bytes;
};
constexpr std::array<TensorTypeTraits, 5> kTensorTypes = {
    {{"U8", 1}, {"I32", 4}, {"I64", 8}, {"F32", 4}, {"F64", 8}}};

const TensorTypeTraits& TensorTraits(TensorType type) {
  return kTensorTypes[static_cast<size_t>(type)];
}

std::string ChecksumOf(std::string text) {
  text.replace(kHeaderStart.size(), kNoDigits.size(), kNoDigits);
  return DigestText(XXH3_64bits(text.data(), text.size()));
}

absl::Status DamagedHeader(absl::string_view reason) {
  return absl::DataLossError(absl::StrCat("the header of the stored factor is damaged: ", reason));
}

std::optional<TensorType> TypeNamed(const Json& name) {
  if (!name.is_string()) return std::nullopt;
  const auto found =
      std::find_if(kTensorTypes.begin(), kTensorTypes.end(), [&](const TensorTypeTraits& type) {
        return name.get_ref<const std::string&>() == type.name;
      });
  if (found == kTensorTypes.end()) return std::nullopt;
  return static_cast<TensorType>(found - kTensorTypes.begin());
}

// Returns the elements of an array of at most `most` integers from 0 on.
std::optional<std::vector<int64_t>> Numbers(const Json& array, size_t most) {
  if (!array.is_array() || array.size() > most) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Json& number : array) {
    if (!number.is_number_integer()) return std::nullopt;
    // Values above the range of int64_t become negative.
    numbers.push_back(number.get<int64_t>());
    if (numbers.back() < 0) return std::nullopt;
  }
  return numbers;
}

absl::StatusOr<Tensor> DecodeTensor(const std::string& name, const Json& value) {
  if (!value.is_object()) return DamagedHeader("a tensor is not an object");
  const auto member = [&](const char* key) -> const Json& {
    static const Json kNone;
    const auto found = value.find(key);
    return found == value.end() ? kNone : *found;
  };
  const auto type = TypeNamed(member("dtype"));
  const auto shape = Numbers(member("shape"), kMaxRank);
  const auto offsets = Numbers(member("data_offsets"), 2);
  if (!type || !shape || !offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1]) {
    return DamagedHeader("a tensor has no valid type, shape or offsets");
  }
  const int64_t bytes = (*offsets)[1] - (*offsets)[0];
  auto expected = static_cast<int64_t>(SizeOf(*type));
  for (const int64_t size : *shape) {
    if (__builtin_mul_overflow(expected, size, &expected)) {
      return DamagedHeader("the size of a tensor overflows");
    }
  }
  if (expected != bytes) return DamagedHeader("the shape and the offsets of a tensor differ");
  return Tensor{name, *type, *shape, static_cast<size_t>((*offsets)[0]),
                static_cast<size_t>(bytes)};
}

}  // namespace

size_t SizeOf(TensorType type) { return TensorTraits(type).bytes; }

absl::StatusOr<std::string> EncodeTensorHeader(TensorHeader& header) {
  Json metadata = {{kChecksumKey, kNoDigits}};
  for (const auto& [key, value] : header.metadata) metadata[key] = value;
  Json object = {{kMetadataKey, std::move(metadata)}};
  size_t offset = 0;
  for (Tensor& tensor : header.tensors) {
    tensor.offset = offset;
    offset += tensor.bytes;
    object[tensor.name] = {{"dtype", TensorTraits(tensor.type).name},
                           {"shape", tensor.shape},
                           {"data_offsets", {tensor.offset, offset}}};
  }
  std::string text;
  try {
    text = object.dump();
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError("a name of the factor is not valid UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');  // aligns the data
  if (text.size() > kMaxTensorHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the header of the factor has ", text.size(),
                                                   " bytes; the limit is ", kMaxTensorHeaderBytes));
  }
  text.replace(kHeaderStart.size(), kNoDigits.size(), ChecksumOf(text));
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(text.size() >> (8 * i) & 0xff));
  return bytes + text;
}

absl::StatusOr<size_t> TensorHeaderLength(std::span<const std::byte> prefix, uint64_t file_bytes) {
  if (prefix.size() != kTensorPrefixBytes || file_bytes < kTensorPrefixBytes) {
    return DamagedHeader("the file ends before the header");
  }
  uint64_t length = 0;
  for (size_t i = 0; i < prefix.size(); ++i)
    length |= uint64_t{std::to_integer<uint8_t>(prefix[i])} << (8 * i);
  if (length > kMaxTensorHeaderBytes || length > file_bytes - kTensorPrefixBytes ||
      length < kHeaderStart.size() + kNoDigits.size()) {
    return DamagedHeader(absl::StrCat("a length of ", length, " bytes is not possible"));
  }
  return static_cast<size_t>(length);
}

absl::StatusOr<TensorHeader> DecodeTensorHeader(std::string_view text, uint64_t data_bytes) {
  if (text.substr(0, kHeaderStart.size()) != kHeaderStart ||
      text.size() < kHeaderStart.size() + kNoDigits.size() ||
      ChecksumOf(std::string(text)) != text.substr(kHeaderStart.size(), kNoDigits.size())) {
    return DamagedHeader("its checksum is wrong");
  }
  Json object = Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return DamagedHeader("it is not a JSON object");
  if (object.size() > kMaxTensors + 1) return DamagedHeader("it has too many tensors");
  TensorHeader header;
  for (auto& [name, value] : object.get_ref<Json::object_t&>()) {
    if (name != kMetadataKey) {
      CROUT_ASSIGN_OR_RETURN(Tensor tensor, DecodeTensor(name, value));
      header.tensors.push_back(std::move(tensor));
      continue;
    }
    if (!value.is_object()) return DamagedHeader("the metadata is not an object");
    for (auto& [key, entry] : value.get_ref<Json::object_t&>()) {
      if (!entry.is_string()) return DamagedHeader("an entry of the metadata is not a string");
      if (key != kChecksumKey) header.metadata[key] = std::move(entry.get_ref<std::string&>());
    }
  }
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const Tensor& a, const Tensor& b) {
                     return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
                   });
  uint64_t end = 0;
  for (const Tensor& tensor : header.tensors) {
    if (tensor.offset != end) return DamagedHeader("the tensors overlap or leave a gap");
    end += tensor.bytes;  // Both are below 2^63.
  }
  if (end != data_bytes) {
    return DamagedHeader(
        absl::StrCat("the tensors have ", end, " bytes; the file has ", data_bytes));
  }
  return header;
}

}  // namespace crout
