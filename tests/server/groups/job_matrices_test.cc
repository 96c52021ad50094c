// SPDX-License-Identifier: Apache-2.0

// Tests the access of ranks without shared memory to matrices.
#include "server/groups/job_matrices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rank/layout.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::job_matrices_test {
namespace {

using Direction = JobMatrices::Direction;

constexpr int64_t kRows = 200;
constexpr int64_t kCols = 130;
constexpr int64_t kLd = 210;
constexpr uint64_t kBytes = kLd * kCols * sizeof(double);

class JobMatricesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(arena_, SharedArena::Create(1 << 20));
    ASSERT_OK_AND_ASSIGN(void* const block, arena_->Acquire(kBytes));
    a_ = static_cast<double*>(block);
    ASSERT_OK_AND_ASSIGN(offset_, arena_->OffsetOf(a_, kBytes));
    for (uint64_t i = 0; i < kBytes / sizeof(double); ++i) a_[i] = static_cast<double>(i);
    memory_ = std::make_unique<JobMatrices>(*arena_);
    rank::v1::Job job;
    job.set_id(7);
    job.mutable_factor()->mutable_a()->mutable_range()->set_offset(offset_);
    job.mutable_factor()->mutable_a()->mutable_range()->set_bytes(kBytes);
    memory_->Begin("token", job);
  }

  // Access to the part of process (row, col) of a grid of 2 x 2.
  rank::v1::Access AccessTo(int row, int col) const {
    rank::v1::Access access;
    access.set_token("token");
    access.set_job(7);
    rank::v1::Part& part = *access.mutable_part();
    part.mutable_range()->set_offset(offset_);
    part.mutable_range()->set_bytes(kBytes);
    part.set_element_bytes(sizeof(double));
    part.set_rows(kRows);
    part.set_cols(kCols);
    part.set_ld(kLd);
    part.set_grid_rows(2);
    part.set_grid_cols(2);
    part.set_grid_row(row);
    part.set_grid_col(col);
    part.set_block(rank::kBlock);
    return access;
  }

  std::unique_ptr<SharedArena> arena_;
  double* a_ = nullptr;
  uint64_t offset_ = 0;
  std::unique_ptr<JobMatrices> memory_;
};

TEST_F(JobMatricesTest, ReadsTheBlocksOfEachProcess) {
  for (const int row : {0, 1}) {
    for (const int col : {0, 1}) {
      std::vector<double> expected;
      for (int64_t j = 0; j < kCols; ++j) {
        for (int64_t i = 0; i < kRows; ++i) {
          if (i / rank::kBlock % 2 == row && j / rank::kBlock % 2 == col) {
            expected.push_back(a_[i + j * kLd]);
          }
        }
      }
      ASSERT_OK_AND_ASSIGN(JobMatrices::Copy copy,
                           memory_->Start(AccessTo(row, col), Direction::kToRank));
      ASSERT_EQ(copy.bytes_left(), expected.size() * sizeof(double));
      std::string bytes;
      while (copy.bytes_left() > 0) ASSERT_OK(copy.Read(1000, &bytes));
      EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
    }
  }
}

TEST_F(JobMatricesTest, WritesNothingElse) {
  std::vector<double> expected(a_, a_ + kBytes / sizeof(double));
  int64_t count = 0;
  for (int64_t j = 0; j < kCols; ++j) {
    for (int64_t i = 0; i < kRows; ++i) {
      if (i / rank::kBlock % 2 != 1 || j / rank::kBlock % 2 != 0) continue;
      expected[i + j * kLd] = -1;
      ++count;
    }
  }
  const std::vector<double> values(count, -1);
  ASSERT_OK_AND_ASSIGN(JobMatrices::Copy copy,
                       memory_->Start(AccessTo(1, 0), Direction::kFromRank));
  ASSERT_OK(copy.Write({reinterpret_cast<const char*>(values.data()), count * sizeof(double)}));
  EXPECT_EQ(copy.bytes_left(), 0u);
  EXPECT_THAT(copy.Write("x"), FailsWith(absl::StatusCode::kOutOfRange, "more bytes"));
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), a_));
}

TEST_F(JobMatricesTest, RefusesOtherJobsTokensAndRanges) {
  rank::v1::Access access = AccessTo(0, 0);
  access.set_job(6);
  EXPECT_THAT(memory_->Start(access, Direction::kToRank).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, "job 6 does not run"));
  access = AccessTo(0, 0);
  access.set_token("");
  EXPECT_THAT(memory_->Start(access, Direction::kToRank).status(),
              FailsWith(absl::StatusCode::kUnauthenticated, "token"));
  for (const auto change : std::vector<void (*)(rank::v1::Part&)>{
           [](rank::v1::Part& p) { p.mutable_range()->set_offset(p.range().offset() + 1); },
           [](rank::v1::Part& p) { p.mutable_range()->set_bytes(p.range().bytes() - 100); },
           [](rank::v1::Part& p) { p.mutable_range()->set_bytes(UINT64_MAX); },
           [](rank::v1::Part& p) { p.set_rows(INT64_MAX); },
           [](rank::v1::Part& p) { p.set_ld(-1); }, [](rank::v1::Part& p) { p.set_cols(0); },
           [](rank::v1::Part& p) { p.set_element_bytes(1 << 20); },
           [](rank::v1::Part& p) { p.set_block(0); }, [](rank::v1::Part& p) { p.set_grid_row(2); },
           [](rank::v1::Part& p) { p.set_grid_rows(0); }}) {
    access = AccessTo(0, 0);
    change(*access.mutable_part());
    EXPECT_THAT(memory_->Start(access, Direction::kToRank).status(),
                FailsWith(absl::StatusCode::kOutOfRange, "not inside a matrix"));
  }
}

TEST_F(JobMatricesTest, EndsCopiesWithTheJob) {
  ASSERT_OK_AND_ASSIGN(JobMatrices::Copy copy,
                       memory_->Start(AccessTo(0, 0), Direction::kFromRank));
  memory_->End();
  EXPECT_THAT(copy.Write("12345678"), FailsWith(absl::StatusCode::kFailedPrecondition, "job 7"));
}

TEST_F(JobMatricesTest, ASolveDoesNotChangeItsFactor) {
  rank::v1::Job job;
  job.set_id(7);
  job.mutable_solve()->mutable_lu()->mutable_range()->set_offset(offset_);
  job.mutable_solve()->mutable_lu()->mutable_range()->set_bytes(kBytes);
  memory_->Begin("token", job);
  EXPECT_OK(memory_->Start(AccessTo(0, 0), Direction::kToRank));
  EXPECT_THAT(memory_->Start(AccessTo(0, 0), Direction::kFromRank).status(),
              FailsWith(absl::StatusCode::kOutOfRange, "may change"));
}

}  // namespace
}  // namespace crout::testing::job_matrices_test
