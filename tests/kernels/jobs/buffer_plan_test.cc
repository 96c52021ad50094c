// SPDX-License-Identifier: Apache-2.0

// Tests the totals of buffer plans, and that a job allocates according to its plan.
#include "kernels/jobs/buffer_plan.h"

#include <algorithm>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/util/size_class.h"
#include "tests/support/memory/counting_resource.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::buffer_plan_test {
namespace {

constexpr Lifetime kKept = {0, Lifetime::kInResult};

class BufferPlanTest : public ::testing::Test {
 protected:
  CountingResource memory_{size_t{1} << 20};
};

TEST_F(BufferPlanTest, SumsByKindAndPhase) {
  BufferPlan plan;
  plan.Add("upload", BufferKind::kUpload, 5000);
  plan.Add("lu", 7000, kKept);
  plan.Add("early", 100, {0, 0});
  plan.Add("late", 9000, {1, 1});
  plan.Add("part", BufferKind::kPart, 333, {1, 1});
  plan.Add("report", BufferKind::kReport, 55);
  plan.Add("reply", BufferKind::kReply, 6000);
  ASSERT_OK_AND_ASSIGN(const JobBytes bytes, plan.Sum());
  EXPECT_EQ(bytes.kept, BlockBytes(7000));
  EXPECT_EQ(bytes.report, 55u);
  EXPECT_EQ(bytes.reply, BlockBytes(6000));
  const size_t first = BlockBytes(5000) + BlockBytes(7000) + BlockBytes(100);
  const size_t second = BlockBytes(7000) + BlockBytes(9000) + 333;
  EXPECT_EQ(bytes.peak, std::max(first, second));
  plan.Keep(0);  // now also live in the second phase
  ASSERT_OK_AND_ASSIGN(const JobBytes kept, plan.Sum());
  EXPECT_EQ(kept.peak, second + BlockBytes(5000));
}

TEST_F(BufferPlanTest, CountsInnerJobInItsPhaseAndItsResult) {
  BufferPlan inner;
  inner.Add("workspace", 4096);
  inner.Add("lu", 8192, kKept);
  BufferPlan outer;
  outer.AddJob(inner, 1);
  outer.Add("last", 100000, {2, 2});
  ASSERT_OK_AND_ASSIGN(const JobBytes bytes, outer.Sum());
  EXPECT_EQ(bytes.kept, BlockBytes(8192));
  EXPECT_EQ(bytes.peak, BlockBytes(8192) + BlockBytes(100000));
  JobBuffers buffers(outer);
  ASSERT_OK(buffers.Allocate(memory_, 1));
  EXPECT_EQ(memory_.live_bytes(), 0u) << "the job within allocates its own";
}

TEST_F(BufferPlanTest, AllocatesTheBuffersOfEachPhase) {
  BufferPlan plan;
  const BufferPlan::Id upload = plan.Add("upload", BufferKind::kUpload, 512);
  const BufferPlan::Id lu = plan.Add("lu", 4096, kKept);
  const BufferPlan::Id late = plan.Add("late", 8192, {1, 1});
  plan.Add("reply", BufferKind::kReply, 1024);
  JobBuffers buffers(plan);
  ASSERT_OK_AND_ASSIGN(Buffer arrived, memory_.Allocate(512));
  buffers.Give(upload, std::move(arrived));
  ASSERT_OK(buffers.Allocate(memory_));
  EXPECT_EQ(memory_.live_bytes(), BlockBytes(512) + BlockBytes(4096));
  EXPECT_FALSE(buffers[late]);
  ASSERT_OK(buffers.Allocate(memory_, 1));
  EXPECT_EQ(buffers.Span(late).size(), 8192u);
  const Buffer taken = buffers.Take(lu);
  EXPECT_EQ(taken.size(), 4096u);
  EXPECT_FALSE(buffers[lu]);
}

TEST_F(BufferPlanTest, NamesBufferThatCannotBeAllocated) {
  BufferPlan plan;
  plan.Add("lu", 4096);
  plan.Add("workspace", 4096);
  JobBuffers buffers(plan);
  memory_.FailAllocations(1, 1);
  const absl::Status status = buffers.Allocate(memory_);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("workspace: "));
}

TEST_F(BufferPlanTest, RefusesOverflowingSum) {
  BufferPlan plan;
  for (int i = 0; i < 4; ++i) plan.Add("huge", std::numeric_limits<size_t>::max() / 4 + 1);
  EXPECT_EQ(plan.Sum().status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace crout::testing::buffer_plan_test
