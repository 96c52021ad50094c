// SPDX-License-Identifier: Apache-2.0

// Headers of safetensors files (https://github.com/huggingface/safetensors): eight bytes with the
// length of the header in little-endian order, the header in JSON, and the data. The header begins
// with a checksum of itself, so that a flipped bit is found before the JSON is parsed.
#ifndef CROUT_SERVER_ENGINE_STORE_SAFETENSORS_H_
#define CROUT_SERVER_ENGINE_STORE_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace crout {

enum class TensorType : uint8_t { kU8, kI32, kI64, kF32, kF64 };

size_t SizeOf(TensorType type);

struct Tensor {
  std::string name;
  TensorType type = TensorType::kU8;
  std::vector<int64_t> shape;
  size_t offset = 0;  // offset of the first byte from the start of the data
  size_t bytes = 0;
};

struct TensorHeader {
  std::map<std::string, std::string> metadata;
  std::vector<Tensor> tensors;  // in the order of their offsets, without gaps
};

// Bytes before the header.
inline constexpr size_t kTensorPrefixBytes = 8;
// Longest header that is read or written.
inline constexpr size_t kMaxTensorHeaderBytes = size_t{1} << 20;

// Sets the offsets of the tensors, in their order, and returns the bytes of a file up to its data.
// The metadata must not contain the key "checksum". INVALID_ARGUMENT if a text is not UTF-8 or the
// header is too long.
absl::StatusOr<std::string> EncodeTensorHeader(TensorHeader& header);

// Returns the length of the header that follows the prefix in a file of `file_bytes` bytes.
// DATA_LOSS if the length is not possible.
absl::StatusOr<size_t> TensorHeaderLength(std::span<const std::byte> prefix, uint64_t file_bytes);

// Decodes a header with data of `data_bytes` bytes. The text may be hostile. DATA_LOSS if its
// checksum is wrong, or if the tensors do not fill the data exactly.
absl::StatusOr<TensorHeader> DecodeTensorHeader(std::string_view text, uint64_t data_bytes);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_STORE_SAFETENSORS_H_
