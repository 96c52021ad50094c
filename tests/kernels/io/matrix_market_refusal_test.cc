// SPDX-License-Identifier: Apache-2.0

// Tests failed allocations on the parsing threads. The reader must return an error or the complete
// matrix, and the threads must continue to run.
#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <string>

#include "kernels/util/thread_pool.h"
#include "tests/kernels/io/matrix_market_testing.h"
#include "tests/support/memory/refused_allocations.h"

namespace crout::matrix_market_refusal_test {
namespace {

// Returns when every task scheduled so far has ended: tasks start in order, and the latch opens
// when each thread of the pool runs one of the tasks added here.
void AwaitScheduledTasks(ThreadPool& pool) {
  const auto latch = std::make_shared<std::latch>(pool.thread_count() + 1);
  for (int i = 0; i < pool.thread_count(); ++i) {
    pool.Schedule([latch] { latch->arrive_and_wait(); });
  }
  latch->arrive_and_wait();
}

TEST(MatrixMarketRefusalTest, SurvivesFailedAllocationsOfParsingThreads) {
  constexpr size_t kPiece = 1000;
  constexpr int kAllocations = 150;  // more than the threads make
  const std::string text = RandomMatrixText(300, 3000, 1);
  MatrixMarketLimits limits;
  limits.segment_bytes = 8 << 10;
  const ReadResult whole = ReadWhole(text, limits);
  ThreadPool pool(2);
  int refused = 0;
  for (const std::string& file : {text, Gzip(text)}) {
    for (int count = 0; count < kAllocations; ++count) {
      SCOPED_TRACE("allocation " + std::to_string(count));
      testing::RefuseAfter(count, testing::Threads::kOthers);
      // Waits for the pool between pieces. Otherwise the reader, which parses segments while it
      // waits, might parse all of them itself.
      const auto next_size = [&] {
        AwaitScheduledTasks(pool);
        return kPiece;
      };
      const ReadResult result = ReadPieces(file, next_size, limits, &pool);
      testing::StopRefusing();
      if (result.status.ok()) {
        EXPECT_EQ(Difference(result, whole), "");
      } else {
        EXPECT_EQ(result.status.code(), absl::StatusCode::kResourceExhausted) << result.status;
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace crout::matrix_market_refusal_test
