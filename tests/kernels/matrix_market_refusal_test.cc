// Memory that the system does not give to the threads that parse: the text is refused, or read all
// the same, and the threads go on.
#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/matrix_market_testing.h"
#include "tests/support/refused_allocations.h"

namespace crout {
namespace {

TEST(MatrixMarketRefusalTest, OnThreadsThatParse) {
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
      const ReadResult result = ReadPieces(
          file, [] { return kPiece; }, limits, &pool);
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
}  // namespace crout
