// SPDX-License-Identifier: Apache-2.0

// Tests the block of a sparse matrix: its index by rows, and the memory freed during assembly.
#include "kernels/io/sparse_block.h"

#include <cstdint>
#include <span>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/sparse_view.h"
#include "kernels/stop_requested.h"

namespace crout::sparse_block_test {
namespace {

using ::testing::ElementsAre;

class SparseBlockTest : public ::testing::Test {
 protected:
  std::optional<EntryPlace> Write(SparseMatrix matrix, DType dtype) {
    n_ = matrix.rows;
    nonzeros_ = matrix.nonzeros();
    dtype_ = dtype;
    block_.resize(SparseLayout(n_, nonzeros_, dtype).bytes);
    return *WriteSparseBlock(std::move(matrix), dtype, block_.data(), [] { return false; });
  }
  template <class T>
  SparseView<T> view() const {
    return AnySparse{block_.data(), dtype_, n_, nonzeros_}.As<T>();
  }
  template <class T>
  static std::vector<T> Of(const T* data, int64_t count) {
    return {data, data + count};
  }

  std::vector<std::byte> block_;
  DType dtype_ = DType::kFloat64;
  int64_t n_ = 0;
  int64_t nonzeros_ = 0;
};

TEST_F(SparseBlockTest, StopsDuringWriting) {
  constexpr int64_t kOrder = int64_t{1} << 19;
  SparseMatrix matrix;
  matrix.rows = matrix.columns = kOrder;
  for (int64_t j = 0; j < kOrder; ++j) {
    matrix.column_start.push_back(j);
    matrix.row.push_back(static_cast<int32_t>(j));
  }
  matrix.column_start.push_back(kOrder);
  matrix.value.resize(kOrder, 1);
  std::vector<std::byte> block(SparseLayout(kOrder, kOrder, DType::kFloat64).bytes);
  int polls = 0;
  const auto write = [&](int stops_at) {
    polls = 0;
    return WriteSparseBlock(matrix, DType::kFloat64, block.data(),
                            [&] { return ++polls == stops_at; })
        .status();
  };
  ASSERT_TRUE(write(0).ok());
  const int all = polls;
  EXPECT_GE(all, 3 * kOrder / StopCounter::kStepsBetweenStops) << "values, and rows twice";
  for (int k = 1; k <= all; ++k) {
    EXPECT_EQ(write(k).code(), absl::StatusCode::kCancelled) << k << " of " << all;
    EXPECT_EQ(polls, k) << "it went on";
  }
}

// Rows 1 and 4 and the last column are empty.
SparseMatrix Example() {
  return {.rows = 5,
          .columns = 5,
          .column_start = {0, 2, 3, 5, 5, 5},
          .row = {0, 2, 3, 0, 2},
          .value = {1, 2, 3, 4, 5},
          .imaginary = {}};
}

TEST_F(SparseBlockTest, FindsEveryEntryInItsRow) {
  ASSERT_FALSE(Write(Example(), DType::kFloat32));
  const SparseView<float> a = view<float>();
  EXPECT_THAT(Of(a.column_start, 6), ElementsAre(0, 2, 3, 5, 5, 5));
  EXPECT_THAT(Of(a.row, 5), ElementsAre(0, 2, 3, 0, 2));
  EXPECT_THAT(Of(a.value, 5), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(Of(a.row_start, 6), ElementsAre(0, 2, 2, 4, 5, 5));
  EXPECT_THAT(Of(a.column, 5), ElementsAre(0, 2, 0, 2, 1));
  EXPECT_THAT(Of(a.position, 5), ElementsAre(0, 3, 1, 4, 2));
}

TEST_F(SparseBlockTest, WritesEmptyMatrices) {
  SparseMatrix empty;
  empty.column_start = {0};
  ASSERT_FALSE(Write(empty, DType::kFloat64));
  EXPECT_EQ(view<double>().row_start[0], 0);
  SparseMatrix zero{
      .rows = 1, .columns = 1, .column_start = {0, 0}, .row = {}, .value = {}, .imaginary = {}};
  ASSERT_FALSE(Write(zero, DType::kFloat64));
  EXPECT_THAT(Of(view<double>().row_start, 2), ElementsAre(0, 0));
}

TEST_F(SparseBlockTest, ReportsEntriesBeyondTheRangeOfTheType) {
  SparseMatrix large = Example();
  large.value[3] = 1e39;
  const std::optional<EntryPlace> place = Write(large, DType::kFloat32);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->row, 0);
  EXPECT_EQ(place->column, 2);
  EXPECT_FALSE(Write(large, DType::kFloat64));
}

}  // namespace
}  // namespace crout::sparse_block_test
