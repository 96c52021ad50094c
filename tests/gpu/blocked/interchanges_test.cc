// SPDX-License-Identifier: Apache-2.0

// Tests row interchanges that are first combined to permutations and then applied at once. Compares
// them with LAPACK's laswp.
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "kernels/cuda/blocked/interchange_rows.h"
#include "kernels/cuda/crout_lu/deferred_interchanges.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/ops/permute_rows.h"
#include "tests/gpu/harness/kernel_test.h"
#include "tests/gpu/harness/vectors.h"

namespace crout::cuda::interchanges_test {
namespace {

// The shape of a factorization: rows, factored columns, and columns per block.
struct Shape {
  int64_t rows;
  int64_t columns;
  int64_t block;
  int64_t two_blocks_end = 0;  // number of columns in panels of two blocks
};

::testing::Message Name(const Shape& shape) {
  return ::testing::Message() << shape.rows << " rows, " << shape.columns
                              << " interchanges in blocks of " << shape.block << ", "
                              << shape.two_blocks_end << " of them in pairs";
}

// Returns 1-based interchanges with near and distant rows, some of them repeated.
std::vector<int64_t> Interchanges(int64_t count, int64_t rows) {
  std::mt19937 random(41);
  std::vector<int64_t> ipiv(count);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t span = k % 3 == 0 ? std::min<int64_t>(rows - k, 7) : rows - k;
    ipiv[k] = k % 5 == 0 ? rows : k + 1 + static_cast<int64_t>(random() % span);
  }
  return ipiv;
}

// Applies interchanges `begin` to `end` - 1 to one column.
template <class V>
void Laswp(const std::vector<int64_t>& ipiv, int64_t begin, int64_t end, V* column) {
  for (int64_t k = begin; k < end; ++k) std::swap(column[k], column[ipiv[k] - 1]);
}

// Returns the original row of each row after laswp, which starts with interchange `begin`.
std::vector<int64_t> Sources(const std::vector<int64_t>& ipiv, int64_t begin, int64_t rows) {
  std::vector<int64_t> sources(rows);
  std::iota(sources.begin(), sources.end(), 0);
  Laswp(ipiv, begin, static_cast<int64_t>(ipiv.size()), sources.data());
  return sources;
}

class InterchangesTest : public KernelTest {
 protected:
  template <class T>
  void ExpectPermuted(int64_t rows, int64_t columns);
  template <class T>
  void ExpectMovedBy(unsigned max_blocks, int64_t columns);
  template <class T>
  void ExpectDeferred(const Shape& shape);
};

TEST_F(InterchangesTest, TracesThePermutationOfEveryBlock) {
  for (const Shape& shape :
       {Shape{1, 1, 1}, Shape{5, 5, 2}, Shape{9, 3, 3}, Shape{100, 64, 32}, Shape{150, 150, 64},
        Shape{300, 256, 128}, Shape{420, 300, 140}, Shape{400, 390, 390}}) {
    SCOPED_TRACE(Name(shape));
    const std::vector<int64_t> ipiv = Interchanges(shape.columns, shape.rows);
    const int64_t blocks = (shape.columns + shape.block - 1) / shape.block;
    const auto pivots = Send(ipiv);
    const auto sources = Allocate<int64_t>(blocks * shape.rows);
    ASSERT_EQ(LaunchTraceInterchanges(pivots.get(), shape.columns, shape.rows, shape.block,
                                      sources.get(), nullptr),
              cudaSuccess);
    const std::vector<int64_t> got = Receive(sources, blocks * shape.rows);
    for (int64_t b = 0; b < blocks; ++b) {
      const auto first = got.begin() + b * shape.rows;
      EXPECT_EQ(std::vector<int64_t>(first, first + shape.rows),
                Sources(ipiv, b * shape.block, shape.rows))
          << "block " << b;
    }
  }
}

TEST_F(InterchangesTest, TracesOnePermutationOfAllBlocks) {
  for (const int64_t n : {1, 2, 127, 128, 129, 300}) {
    const std::vector<int64_t> ipiv = Interchanges(n, n);
    const auto pivots = Send(ipiv);
    const auto permutation = Allocate<int64_t>(n);
    ASSERT_EQ(LaunchTracePermutation(pivots.get(), n, permutation.get(), nullptr), cudaSuccess);
    EXPECT_EQ(Receive(permutation, n), Sources(ipiv, 0, n)) << n << " interchanges";
  }
}

template <class T>
void InterchangesTest::ExpectPermuted(int64_t rows, int64_t columns) {
  const int64_t from_ld = rows + 2;
  const int64_t to_ld = rows + 3;
  const std::vector<T> from = RandomVector<T>(from_ld * columns, 42);
  const std::vector<T> to = RandomVector<T>(to_ld * columns, 43);
  std::vector<int64_t> permutation(rows);
  std::iota(permutation.begin(), permutation.end(), 0);
  std::shuffle(permutation.begin(), permutation.end(), std::mt19937(44));
  const auto in = Send(from);
  const auto p = Send(permutation);
  for (const bool inverse : {false, true}) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << columns << " " << NameOf(kDTypeOf<T>)
                                      << ", inverse " << inverse);
    const auto out = Send(to);
    ASSERT_EQ(
        LaunchPermuteRows(
            {reinterpret_cast<std::byte*>(in.get()), kDTypeOf<T>, rows, columns, from_ld}, p.get(),
            inverse, {reinterpret_cast<std::byte*>(out.get()), kDTypeOf<T>, rows, columns, to_ld},
            nullptr),
        cudaSuccess);
    std::vector<T> expected = to;
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t source = inverse ? i : permutation[i];
        const int64_t target = inverse ? permutation[i] : i;
        expected[target + j * to_ld] = from[source + j * from_ld];
      }
    }
    EXPECT_TRUE(SameBits(Receive(out, to.size()), expected));
  }
}

TEST_F(InterchangesTest, PermutesRows) {
  for (const int64_t rows : {1, 5, 256, 300}) {
    for (const int64_t columns : {1, 9}) {
      ExpectPermuted<double>(rows, columns);
      ExpectPermuted<float>(rows, columns);
      ExpectPermuted<Complex<double>>(rows, columns);
      ExpectPermuted<Complex<float>>(rows, columns);
    }
  }
}

template <class T>
void InterchangesTest::ExpectMovedBy(unsigned max_blocks, int64_t columns) {
  constexpr int64_t kRows = 700;
  constexpr int64_t kCount = 100;  // enough for a plan
  constexpr int64_t kLd = kRows + 3;
  const std::vector<T> a = RandomVector<T>(kLd * columns, 46);
  const std::vector<int64_t> ipiv = Interchanges(kCount, kRows);
  std::vector<T> expected = a;
  for (int64_t j = 0; j < columns; ++j) Laswp(ipiv, 0, kCount, &expected[j * kLd]);
  const auto pivots = Send(ipiv);
  const auto control = Control<T>();
  const auto plan = Allocate<InterchangePlan>(1);
  const auto column = Send(a);
  ASSERT_EQ(LaunchInterchangeRows<T>({column.get(), kRows, 1, kLd}, pivots.get(), 0, kCount,
                                     plan.get(), control.get(), nullptr),
            cudaSuccess);
  for (const bool halted : {false, true}) {
    SCOPED_TRACE(::testing::Message() << columns << " columns by " << max_blocks << " blocks, "
                                      << NameOf(kDTypeOf<T>) << ", halted " << halted);
    const auto matrix = Send(a);
    const auto now = halted ? Halted<T>() : Control<T>();
    ASSERT_EQ(LaunchInterchangeRows<T>({matrix.get(), kRows, columns, kLd}, plan.get(), kCount,
                                       now.get(), nullptr, max_blocks),
              cudaSuccess);
    EXPECT_TRUE(SameBits(Receive(matrix, a.size()), halted ? a : expected));
  }
}

// The blocks of threads move all columns at once, or need several passes.
TEST_F(InterchangesTest, MovesRowsWithFewBlocks) {
  for (const unsigned max_blocks : {1U, 3U, kAnyBlocks}) {
    for (const int64_t columns : {1, 8, 23, 24, 25, 83}) {
      ExpectMovedBy<double>(max_blocks, columns);
      ExpectMovedBy<float>(max_blocks, columns);
      ExpectMovedBy<Complex<double>>(max_blocks, columns);
      ExpectMovedBy<Complex<float>>(max_blocks, columns);
    }
  }
}

template <class T>
void InterchangesTest::ExpectDeferred(const Shape& shape) {
  // Number of columns to the right of the factored columns. They must not change.
  constexpr int64_t kBeside = 2;
  const int64_t ld = shape.rows + 3;
  const std::vector<T> a = RandomVector<T>(ld * (shape.columns + kBeside), 45);
  const std::vector<int64_t> ipiv = Interchanges(shape.columns, shape.rows);
  std::vector<T> expected = a;
  for (int64_t j = 0; j < shape.columns; ++j) {
    const int64_t width = j < shape.two_blocks_end ? 2 * shape.block : shape.block;
    const int64_t behind = (j / width + 1) * width;
    if (behind < shape.columns) Laswp(ipiv, behind, shape.columns, &expected[j * ld]);
  }
  for (const bool halted : {false, true}) {
    SCOPED_TRACE(Name(shape) << ", " << NameOf(kDTypeOf<T>) << ", halted " << halted);
    const auto matrix = Send(a);
    const auto pivots = Send(ipiv);
    const auto control = halted ? Halted<T>() : Control<T>();
    const PanelLayout panels = {shape.columns, shape.block, shape.two_blocks_end};
    const auto workspace =
        Allocate<std::byte>(DeferredInterchangesBytes(kDTypeOf<T>, shape.rows, panels));
    ASSERT_EQ(LaunchDeferredInterchanges<T>({matrix.get(), shape.rows, shape.columns + kBeside, ld},
                                            pivots.get(), panels, workspace.get(), control.get(),
                                            nullptr),
              cudaSuccess);
    EXPECT_TRUE(SameBits(Receive(matrix, a.size()), halted ? a : expected));
  }
}

// Uses one to three blocks, the last of them complete or partial, and panels of two blocks. Some
// matrices have more columns or rows than the GPU's blocks of threads process at once.
TEST_F(InterchangesTest, AppliesDeferredInterchanges) {
  for (const Shape& shape :
       {Shape{50, 10, 16}, Shape{7, 7, 4}, Shape{40, 40, 20}, Shape{100, 64, 32},
        Shape{100, 70, 32}, Shape{96, 96, 32}, Shape{300, 280, 110}, Shape{4200, 6, 2},
        Shape{300, 260, 32, 128}, Shape{96, 96, 16, 96}, Shape{64, 60, 16, 32}}) {
    ExpectDeferred<double>(shape);
    ExpectDeferred<float>(shape);
    ExpectDeferred<Complex<double>>(shape);
    ExpectDeferred<Complex<float>>(shape);
  }
}

}  // namespace
}  // namespace crout::cuda::interchanges_test
