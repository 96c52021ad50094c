// Tests the block of a sparse matrix: its row index, and the memory freed during assembly.
#include "kernels/io/sparse_block.h"

#include <cstdint>
#include <span>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/sparse_view.h"

namespace crout {
namespace {

using ::testing::ElementsAre;

class SparseBlockTest : public ::testing::Test {
 protected:
  std::optional<EntryPlace> Write(SparseMatrix matrix, DType dtype) {
    n_ = matrix.rows;
    nonzeros_ = matrix.nonzeros();
    dtype_ = dtype;
    block_.resize(SparseLayout(n_, nonzeros_, dtype).bytes);
    return WriteSparseBlock(std::move(matrix), dtype, block_.data());
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

TEST_F(SparseBlockTest, OfNothing) {
  SparseMatrix empty;
  empty.column_start = {0};
  ASSERT_FALSE(Write(empty, DType::kFloat64));
  EXPECT_EQ(view<double>().row_start[0], 0);
  SparseMatrix zero{
      .rows = 1, .columns = 1, .column_start = {0, 0}, .row = {}, .value = {}, .imaginary = {}};
  ASSERT_FALSE(Write(zero, DType::kFloat64));
  EXPECT_THAT(Of(view<double>().row_start, 2), ElementsAre(0, 0));
}

TEST_F(SparseBlockTest, NamesWhatIsBeyondTheType) {
  SparseMatrix large = Example();
  large.value[3] = 1e39;
  const std::optional<EntryPlace> place = Write(large, DType::kFloat32);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->row, 0);
  EXPECT_EQ(place->column, 2);
  EXPECT_FALSE(Write(large, DType::kFloat64));
}

}  // namespace
}  // namespace crout
