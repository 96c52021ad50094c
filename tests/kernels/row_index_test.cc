#include "kernels/io/row_index.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix_market_testing.h"

namespace crout {
namespace {

TEST(RowIndexTest, FindsEveryEntryInItsRow) {
  // Rows 1 and 4 are empty, and the last column.
  const SparseMatrix a{.rows = 5,
                       .columns = 4,
                       .column_start = {0, 2, 3, 5, 5},
                       .row = {0, 2, 3, 0, 2},
                       .value = {1, 2, 3, 4, 5},
                       .imaginary = {}};
  const RowIndex index = IndexRows(a);
  EXPECT_EQ(index.row_start, (std::vector<int64_t>{0, 2, 2, 4, 5, 5}));
  EXPECT_EQ(index.column, (std::vector<int32_t>{0, 2, 0, 2, 1}));
  EXPECT_EQ(index.position, (std::vector<int32_t>{0, 3, 1, 4, 2}));
}

TEST(RowIndexTest, OfNothing) {
  const SparseMatrix empty{.column_start = {0}, .row = {}, .value = {}, .imaginary = {}};
  EXPECT_EQ(IndexRows(empty).row_start, std::vector<int64_t>{0});
  const SparseMatrix zero{
      .rows = 1, .columns = 1, .column_start = {0, 0}, .row = {}, .value = {}, .imaginary = {}};
  EXPECT_EQ(IndexRows(zero).row_start, (std::vector<int64_t>{0, 0}));
}

TEST(RowIndexTest, TakesTheBytesThatItSays) {
  const SparseMatrix a =
      ReadWhole("%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 1\n3 1 2\n3 2 5\n")
          .sparse;
  const RowIndex index = IndexRows(a);
  EXPECT_EQ(index.row_start.capacity() * sizeof(int64_t) +
                (index.column.capacity() + index.position.capacity()) * sizeof(int32_t),
            RowIndexBytes(a));
}

}  // namespace
}  // namespace crout
