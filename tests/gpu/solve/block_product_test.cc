// SPDX-License-Identifier: Apache-2.0

// Tests products of a block and a few columns against float64 or complex128 sums on the host.
#include "kernels/cuda/solve/block_product.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/gpu/harness/kernel_test.h"
#include "tests/gpu/harness/vectors.h"
#include "tests/gpu/harness/wide.h"

namespace crout::cuda::block_product_test {
namespace {

// The addend c: absent, a separate matrix, or the output.
enum class Addend : uint8_t { kNone, kOther, kOut };

struct Problem {
  int64_t rows;
  int64_t depth;
  int64_t columns;
  BlockShape shape = BlockShape::kFull;
  bool unit = false;
  bool transposed = false;
  Addend addend = Addend::kNone;
  bool subtract = false;
  bool conjugate = false;
};

::testing::Message Name(const Problem& problem, DType dtype) {
  return ::testing::Message() << problem.rows << " x " << problem.depth << " times "
                              << problem.columns << " columns, " << NameOf(dtype) << ", shape "
                              << static_cast<int>(problem.shape) << " unit " << problem.unit
                              << " transposed " << problem.transposed << " addend "
                              << static_cast<int>(problem.addend) << " subtract "
                              << problem.subtract << " conjugate " << problem.conjugate;
}

// Returns whether the product reads element (i, k) of op(A) from memory.
bool Stored(const Problem& problem, int64_t i, int64_t k) {
  if (problem.shape == BlockShape::kFull) return true;
  if (i == k) return !problem.unit;
  return (k < i) == (problem.shape == BlockShape::kLower);
}

// A column-major matrix with padding between its columns.
template <class T>
struct Columns {
  Columns(int64_t rows, int64_t cols, int64_t padding, uint64_t seed)
      : rows(rows), ld(rows + padding), values(RandomVector<T>(ld * cols, seed)) {}

  T& operator()(int64_t i, int64_t j) { return values[i + j * ld]; }
  T operator()(int64_t i, int64_t j) const { return values[i + j * ld]; }
  // Sets the padding to NaN, because the kernel must not read it.
  void SpoilPadding() {
    for (size_t e = 0; e < values.size(); ++e) {
      if (static_cast<int64_t>(e) % ld >= rows) values[e] = kNan<T>;
    }
  }

  int64_t rows;
  int64_t ld;
  std::vector<T> values;
};

class BlockProductTest : public KernelTest {
 protected:
  template <class T>
  void ExpectAsOnTheHost(const Problem& problem);
  // Tests all types. Tests complex types with both transposes if the problem has a transpose.
  void ExpectInEveryType(Problem problem) {
    ExpectAsOnTheHost<double>(problem);
    ExpectAsOnTheHost<float>(problem);
    for (const bool conjugate : {false, true}) {
      if (conjugate && !problem.transposed) continue;
      problem.conjugate = conjugate;
      ExpectAsOnTheHost<Complex<double>>(problem);
      ExpectAsOnTheHost<Complex<float>>(problem);
    }
  }
  template <class T>
  void ExpectSameBitsWithAnEarlyStart(int64_t n, int64_t columns);
};

template <class T>
void BlockProductTest::ExpectAsOnTheHost(const Problem& problem) {
  SCOPED_TRACE(Name(problem, kDTypeOf<T>));
  const bool transposed = problem.transposed;
  Columns<T> a(transposed ? problem.depth : problem.rows, transposed ? problem.rows : problem.depth,
               2, 61);
  Columns<T> x(problem.depth, problem.columns, 1, 62);
  Columns<T> c(problem.rows, problem.columns, 3, 63);
  const Columns<T> out(problem.rows, problem.columns, 5, 64);
  a.SpoilPadding();
  x.SpoilPadding();
  c.SpoilPadding();
  for (int64_t k = 0; k < problem.depth; ++k) {
    for (int64_t i = 0; i < problem.rows; ++i) {
      if (Stored(problem, i, k)) continue;
      (transposed ? a(k, i) : a(i, k)) = kNan<T>;
    }
  }

  const auto a_sent = Send(a.values);
  const auto x_sent = Send(x.values);
  const auto c_sent = Send(c.values);
  const auto out_sent = Send(out.values);
  BlockProduct<T> product;
  product.a = a_sent.get();
  product.a_row = transposed ? a.ld : 1;
  product.a_col = transposed ? 1 : a.ld;
  product.shape = problem.shape;
  product.unit = problem.unit;
  product.x = {x_sent.get(), problem.depth, problem.columns, x.ld};
  product.out = {out_sent.get(), problem.rows, problem.columns, out.ld};
  if (problem.addend == Addend::kOther) {
    product.c = {c_sent.get(), problem.rows, problem.columns, c.ld};
  } else if (problem.addend == Addend::kOut) {
    product.c = {out_sent.get(), problem.rows, problem.columns, out.ld};
  }
  product.subtract = problem.subtract;
  product.conjugate = problem.conjugate;
  ASSERT_EQ(LaunchBlockProduct(product, ProductStart::kAfterAll, nullptr), cudaSuccess);
  const std::vector<T> got = Receive(out_sent, out.values.size());

  // Both sides have one float64 roundoff per term. The kernel's result has one more roundoff of T.
  using Wide = HostWide<T>;
  const double rounding =
      static_cast<double>(kIsComplex<T> ? 2 * problem.depth + 2 : problem.depth + 2) *
      std::numeric_limits<double>::epsilon();
  std::vector<T> expected = out.values;  // with the padding
  for (int64_t j = 0; j < problem.columns; ++j) {
    for (int64_t i = 0; i < problem.rows; ++i) {
      Wide sum = 0;
      double terms = 0;
      for (int64_t k = 0; k < problem.depth; ++k) {
        Wide element = problem.unit && i == k ? 1 : 0;
        if (Stored(problem, i, k)) element = ToWide(transposed ? a(k, i) : a(i, k));
        if (problem.conjugate && Stored(problem, i, k)) element = Conjugated(element);
        const Wide term = element * ToWide(x(k, j));
        sum += term;
        terms += std::abs(term);
      }
      Wide before = 0;
      if (problem.addend == Addend::kOther) before = ToWide(c(i, j));
      if (problem.addend == Addend::kOut) before = ToWide(out(i, j));
      const Wide truth = problem.subtract ? before - sum : before + sum;
      terms += std::abs(before);
      const int64_t e = i + j * out.ld;
      ASSERT_LE(std::abs(ToWide(got[e]) - truth),
                rounding * terms + std::numeric_limits<RealPart<T>>::epsilon() * std::abs(truth))
          << "row " << i << " of column " << j << ": " << ToWide(got[e]) << ", not " << truth;
      expected[e] = got[e];
    }
  }
  EXPECT_TRUE(SameBits(got, expected));
}

constexpr int64_t kColumns[] = {1, 7, 8, 10, 33};
constexpr Addend kAddends[] = {Addend::kNone, Addend::kOther, Addend::kOut};

// Uses tall, deep and square blocks. Some sizes are multiples of a tile's 16 rows. With the last
// shape, each pass processes the maximum number of columns.
TEST_F(BlockProductTest, MultipliesWholeBlocks) {
  struct Shape {
    int64_t rows;
    int64_t depth;
  };
  int turn = 0;
  for (const Shape& shape :
       {Shape{1, 1}, Shape{16, 16}, Shape{33, 70}, Shape{20, 600}, Shape{530, 40}}) {
    for (const int64_t columns : kColumns) {
      for (const bool transposed : {false, true}) {
        Problem problem = {shape.rows, shape.depth, columns};
        problem.transposed = transposed;
        problem.addend = kAddends[turn % 3];
        problem.subtract = turn % 2 == 0;
        ++turn;
        ExpectInEveryType(problem);
      }
    }
  }
}

TEST_F(BlockProductTest, MultipliesTriangles) {
  int turn = 0;
  for (const int64_t order : {1, 15, 16, 17, 33, 100, 300}) {
    for (const int64_t columns : kColumns) {
      for (const BlockShape shape : {BlockShape::kLower, BlockShape::kUpper}) {
        for (const bool unit : {false, true}) {
          for (const bool transposed : {false, true}) {
            Problem problem = {order, order, columns, shape, unit, transposed};
            problem.addend = kAddends[turn % 3];
            problem.subtract = turn / 3 % 2 == 0;
            ++turn;
            ExpectInEveryType(problem);
          }
        }
      }
    }
  }
}

// Uses more columns per pass, and rows longer than the warps process at once.
TEST_F(BlockProductTest, MultipliesALargeTriangle) {
  for (const BlockShape shape : {BlockShape::kLower, BlockShape::kUpper}) {
    for (const bool transposed : {false, true}) {
      for (const int64_t columns : {1, 33}) {
        const Problem problem = {550, 550, columns, shape, true, transposed, Addend::kOut, true};
        ExpectInEveryType(problem);
      }
    }
  }
}

TEST_F(BlockProductTest, AddsEveryAddend) {
  for (const Addend addend : kAddends) {
    for (const bool subtract : {false, true}) {
      for (const int64_t columns : {3, 20}) {
        Problem problem = {40, 50, columns};
        problem.addend = addend;
        problem.subtract = subtract;
        ExpectInEveryType(problem);
      }
    }
  }
}

// Computes x := A b, b := b - A x and x := x + A b, like a solve with a diagonal block.
template <class T>
void BlockProductTest::ExpectSameBitsWithAnEarlyStart(int64_t n, int64_t columns) {
  SCOPED_TRACE(::testing::Message()
               << "order " << n << ", " << columns << " columns, " << NameOf(kDTypeOf<T>));
  const std::vector<T> a = RandomVector<T>(n * n, 65);
  const std::vector<T> b = RandomVector<T>(n * columns, 66);
  const auto a_sent = Send(a);
  const auto run = [&](ProductStart start, std::vector<T>& b_left) {
    const auto b_sent = Send(b);
    const auto x_sent = Send(std::vector<T>(n * columns));
    const Stream stream = MakeStream();
    const MatrixView<T> b_view = {b_sent.get(), n, columns, n};
    const MatrixView<T> x_view = {x_sent.get(), n, columns, n};
    const MatrixView<const T> b_read = {b_sent.get(), n, columns, n};
    const MatrixView<const T> x_read = {x_sent.get(), n, columns, n};
    BlockProduct<T> product;
    product.a = a_sent.get();
    product.a_row = 1;
    product.a_col = n;
    product.shape = BlockShape::kLower;
    product.x = b_read;
    product.out = x_view;
    EXPECT_EQ(LaunchBlockProduct(product, ProductStart::kAfterAll, stream.get()), cudaSuccess);
    product.x = x_read;
    product.c = b_read;
    product.out = b_view;
    product.subtract = true;
    EXPECT_EQ(LaunchBlockProduct(product, start, stream.get()), cudaSuccess);
    product.x = b_read;
    product.c = x_read;
    product.out = x_view;
    product.subtract = false;
    EXPECT_EQ(LaunchBlockProduct(product, start, stream.get()), cudaSuccess);
    b_left = Receive(b_sent, b.size());
    return Receive(x_sent, b.size());
  };
  std::vector<T> b_early;
  std::vector<T> b_after;
  const std::vector<T> x_early = run(ProductStart::kEarly, b_early);
  const std::vector<T> x_after = run(ProductStart::kAfterAll, b_after);
  EXPECT_TRUE(SameBits(x_early, x_after));
  EXPECT_TRUE(SameBits(b_early, b_after));
}

TEST_F(BlockProductTest, GivesTheSameBitsWithAnEarlyStart) {
  for (const int64_t n : {17, 300, 550}) {
    for (const int64_t columns : {1, 10, 33}) {
      ExpectSameBitsWithAnEarlyStart<double>(n, columns);
      ExpectSameBitsWithAnEarlyStart<float>(n, columns);
      ExpectSameBitsWithAnEarlyStart<Complex<double>>(n, columns);
      ExpectSameBitsWithAnEarlyStart<Complex<float>>(n, columns);
    }
  }
}

}  // namespace
}  // namespace crout::cuda::block_product_test
