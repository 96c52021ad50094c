// SPDX-License-Identifier: Apache-2.0

// Layout of the data of batches.
#ifndef CROUT_CLIENT_CPP_BATCH_LAYOUT_H_
#define CROUT_CLIENT_CPP_BATCH_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace crout {
inline namespace api {
namespace internal {

// Each matrix begins at a multiple of this many bytes, counted from the first.
inline constexpr int64_t kBatchAlignment = 16;

inline constexpr int64_t AlignBatch(int64_t bytes) {
  return (bytes + kBatchAlignment - 1) / kBatchAlignment * kBatchAlignment;
}

// Bytes of the figures of one member: pivot growth, quality, info.
inline constexpr size_t kMemberBytes = 2 * sizeof(double) + sizeof(int32_t);
// Bytes of the figures of one system: backward error, info.
inline constexpr int64_t kSystemBytes = sizeof(double) + sizeof(int32_t);

// Copies `count` values from the bytes of a container, which must have them.
template <class T, class Bytes>
std::vector<T> ArrayAt(const Bytes& bytes, int64_t offset, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  if (count > 0) std::memcpy(values.data(), bytes.data() + offset, values.size() * sizeof(T));
  return values;
}

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_BATCH_LAYOUT_H_
