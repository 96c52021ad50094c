// SPDX-License-Identifier: Apache-2.0

// Layout of BatchSpec's payload.
#ifndef CROUT_CLIENT_CPP_BATCH_LAYOUT_H_
#define CROUT_CLIENT_CPP_BATCH_LAYOUT_H_

#include <cstdint>

namespace crout::client {

// Each matrix begins at a multiple of this many bytes, counted from the first.
inline constexpr int64_t kBatchAlignment = 16;

inline constexpr int64_t AlignBatch(int64_t bytes) {
  return (bytes + kBatchAlignment - 1) / kBatchAlignment * kBatchAlignment;
}

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_BATCH_LAYOUT_H_
