// SPDX-License-Identifier: Apache-2.0

// Tests the limits of the RPC layer.
#include "server/rpc/core.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace crout::testing::core_test {
namespace {

TEST(LimitsTest, ReplyChunksFollowTheTransferLimits) {
  Limits limits;
  EXPECT_EQ(limits.ReplyChunkBytes(), size_t{960} << 10);
  limits.transfer.min_rate = 0;
  EXPECT_EQ(limits.ReplyChunkBytes(), limits.reply_chunk_bytes);
  limits.transfer = {.idle_timeout = absl::InfiniteDuration()};
  EXPECT_EQ(limits.ReplyChunkBytes(), limits.reply_chunk_bytes);
  limits.transfer = {.min_rate = size_t{1} << 30};
  EXPECT_EQ(limits.ReplyChunkBytes(), limits.reply_chunk_bytes);
  limits.transfer = {.idle_timeout = absl::Milliseconds(1), .min_rate = 1};
  EXPECT_EQ(limits.ReplyChunkBytes(), size_t{4} << 10);
}

}  // namespace
}  // namespace crout::testing::core_test
