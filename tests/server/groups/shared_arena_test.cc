// SPDX-License-Identifier: Apache-2.0

#include "server/groups/shared_arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "server/groups/group_spec.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::shared_arena_test {
namespace {

constexpr size_t kPage = 4096;

TEST(SharedArenaTest, ReusesReleasedRangesAsZeros) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SharedArena> arena, SharedArena::Create(4 * kPage));
  ASSERT_OK_AND_ASSIGN(void* const a, arena->Acquire(1));
  ASSERT_OK_AND_ASSIGN(void* const b, arena->Acquire(2 * kPage));
  ASSERT_OK_AND_ASSIGN(void* const c, arena->Acquire(kPage));
  EXPECT_THAT(arena->Acquire(1), FailsWith(absl::StatusCode::kResourceExhausted, "4096 bytes"));
  std::memset(b, 1, 2 * kPage);
  arena->Release(a, 1);
  arena->Release(c, kPage);
  arena->Release(b, 2 * kPage);
  // The three ranges are one again.
  ASSERT_OK_AND_ASSIGN(void* const all, arena->Acquire(4 * kPage));
  EXPECT_EQ(std::memchr(all, 1, 4 * kPage), nullptr);
  arena->Release(all, 4 * kPage);
}

TEST(SharedArenaTest, ChecksRanges) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SharedArena> arena, SharedArena::Create(2 * kPage));
  ASSERT_OK_AND_ASSIGN(void* const block, arena->Acquire(kPage));
  ASSERT_OK_AND_ASSIGN(const uint64_t offset, arena->OffsetOf(block, kPage));
  EXPECT_EQ(offset, kPage);
  EXPECT_THAT(arena->OffsetOf(block, kPage + 1), FailsWith(absl::StatusCode::kInternal, "not in"));
  const int outside = 0;
  EXPECT_THAT(arena->OffsetOf(&outside, 1), FailsWith(absl::StatusCode::kInternal, "not in"));
}

TEST(GroupSpecTest, ReadsNameAndRanks) {
  ASSERT_OK_AND_ASSIGN(const GroupSpec spec, ParseGroup("big-2=host:4"));
  EXPECT_EQ(spec.name, "big-2");
  EXPECT_EQ(spec.ranks, 4);
  EXPECT_EQ(spec.join, "");
  ASSERT_OK_AND_ASSIGN(const GroupSpec joined, ParseGroup("big=join:8@[::]:50052"));
  EXPECT_EQ(joined.ranks, 8);
  EXPECT_EQ(joined.join, "[::]:50052");
  ASSERT_OK_AND_ASSIGN(const GroupSpec gpus, ParseGroup("big=cuda:0,3,1"));
  EXPECT_EQ(gpus.gpus, (std::vector<int>{0, 3, 1}));
  EXPECT_EQ(gpus.ranks, 3);
}

void ExpectRefused(std::string_view text) {
  EXPECT_THAT(ParseGroup(text),
              FailsWith(absl::StatusCode::kInvalidArgument, "is not NAME=host:RANKS"))
      << text;
}

TEST(GroupSpecTest, RefusesOtherForms) {
  for (const char* text :
       {"", "big", "=host:4", "big=host", "big=host:", "big=host:0", "big=host:x", "big=host:1025",
        "big=gpu:0", "Big=host:2", "a/b=host:2", "a123456789b123456789c123456789d12=host:2",
        "big=join:2", "big=join:2@", "big=join:0@a:1", "big=join:2@host", "=join:2@a:1"}) {
    ExpectRefused(text);
  }
}

TEST(GroupSpecTest, RefusesGpusThatAreNoOrdinalsOrRepeated) {
  for (const char* text : {"big=cuda:", "big=cuda:0,0", "big=cuda:0,x", "big=cuda:-1"}) {
    ExpectRefused(text);
  }
}

}  // namespace
}  // namespace crout::testing::shared_arena_test
