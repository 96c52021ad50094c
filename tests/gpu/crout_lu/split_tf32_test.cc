// SPDX-License-Identifier: Apache-2.0

// Tests the kernel that splits float32 numbers into sums of two TF32 numbers for tensor cores.
#include "kernels/cuda/crout_lu/split_tf32.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/cuda/device/complex.h"
#include "tests/gpu/harness/kernel_test.h"
#include "tests/gpu/harness/vectors.h"

namespace crout::cuda::split_tf32_test {
namespace {

using Limits = std::numeric_limits<float>;

// Error bounds of the sum. kRelative holds if the low part is a normal number. The last bit of a
// subnormal TF32 number is 2^13 times the smallest float; kAbsolute is half of this bit.
constexpr double kRelative = 0x1p-22;
constexpr double kAbsolute = 0x1p-137;

bool IsTf32(float x) { return (std::bit_cast<uint32_t>(x) & 0x1fffU) == 0; }

class SplitTf32Test : public KernelTest {
 protected:
  struct Parts {
    std::vector<float> high;
    std::vector<float> high_copy;
    std::vector<float> low;
  };

  // Number of unused elements between the columns of each matrix. Results include them.
  static constexpr int64_t kPadding[4] = {1, 2, 3, 4};

  static Parts Split(const std::vector<float>& a, int64_t rows, int64_t columns,
                     const Parts& before, bool halted) {
    const auto matrix = Send(a);
    const auto high = Send(before.high);
    const auto high_copy = Send(before.high_copy);
    const auto low = Send(before.low);
    const auto control = halted ? Halted<float>() : Control<float>();
    EXPECT_EQ(LaunchSplitTf32<float>({matrix.get(), rows, columns, rows + kPadding[0]},
                                     {{high.get(), columns, rows, columns + kPadding[1]},
                                      {high_copy.get(), columns, rows, columns + kPadding[2]},
                                      {low.get(), columns, rows, columns + kPadding[3]}},
                                     control.get(), nullptr),
              cudaSuccess);
    return {Receive(high, before.high.size()), Receive(high_copy, before.high_copy.size()),
            Receive(low, before.low.size())};
  }

  static Parts Before(int64_t rows, int64_t columns) {
    return {RandomVector<float>((columns + kPadding[1]) * rows, 51),
            RandomVector<float>((columns + kPadding[2]) * rows, 52),
            RandomVector<float>((columns + kPadding[3]) * rows, 53)};
  }

  static void ExpectSplit(const std::vector<float>& a, int64_t rows, int64_t columns) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << columns);
    const Parts before = Before(rows, columns);
    const Parts got = Split(a, rows, columns, before, false);
    Parts expected = before;  // with the padding
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows; ++i) {
        const float x = a[i + j * (rows + kPadding[0])];
        const float high = got.high[j + i * (columns + kPadding[1])];
        const float low = got.low[j + i * (columns + kPadding[3])];
        ASSERT_TRUE(IsTf32(high) && IsTf32(low)) << x << " as " << high << " + " << low;
        ASSERT_LE(std::abs(high), std::abs(x));
        ASSERT_LT(std::abs(x) - std::abs(high), std::max(0x1p-10 * std::abs(double{x}), 0x1p-136));
        ASSERT_LE(std::abs(double{x} - high - low),
                  std::max(kRelative * std::abs(double{x}), kAbsolute))
            << x << " as " << high << " + " << low;
        expected.high[j + i * (columns + kPadding[1])] = high;
        expected.high_copy[j + i * (columns + kPadding[2])] = high;
        expected.low[j + i * (columns + kPadding[3])] = low;
      }
    }
    EXPECT_TRUE(SameBits(got.high, expected.high));
    EXPECT_TRUE(SameBits(got.high_copy, expected.high_copy));
    EXPECT_TRUE(SameBits(got.low, expected.low));
  }
};

TEST_F(SplitTf32Test, PartsSumToTwentyTwoBits) {
  for (const int64_t rows : {1, 31, 64, 300}) {
    for (const int64_t columns : {1, 7, 32, 70}) {
      ExpectSplit(RandomVector<float>((rows + kPadding[0]) * columns, 54), rows, columns);
    }
  }
}

// The magnitudes range from the smallest to the largest float.
TEST_F(SplitTf32Test, SplitsNumbersOfEveryMagnitude) {
  constexpr int64_t kColumns = 20;
  const int64_t rows = Limits::max_exponent - Limits::min_exponent + Limits::digits;
  std::vector<float> a = RandomVector<float>((rows + kPadding[0]) * kColumns, 55);
  for (int64_t j = 0; j < kColumns; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      float& x = a[i + j * (rows + kPadding[0])];
      x = std::ldexp(x, Limits::max_exponent - static_cast<int>(i));
    }
  }
  ExpectSplit(a, rows, kColumns);
}

TEST_F(SplitTf32Test, SplitsSpecialNumbers) {
  std::vector<float> a;
  for (const float x : {0.0F, 1.0F, 1 + Limits::epsilon(), 1 + 0x1p-11F, 2 - Limits::epsilon(),
                        Limits::min(), Limits::min() - Limits::denorm_min(), Limits::denorm_min(),
                        0x1p-137F, 0x1p-136F, Limits::max(), 0x1.ffep+127F, 0x1p+127F}) {
    a.push_back(x);
    a.push_back(-x);
  }
  const auto rows = static_cast<int64_t>(a.size());
  a.resize(rows + kPadding[0]);
  ExpectSplit(a, rows, 1);
}

// The kernel replaces each complex number by the real 2 x 2 matrix that multiplies (re, im).
TEST_F(SplitTf32Test, SplitsComplexNumbersAsRealBlocks) {
  constexpr int64_t kRows = 70;
  constexpr int64_t kColumns = 33;
  const std::vector<float> pairs = RandomVector<float>(2 * kRows * kColumns, 57);
  std::vector<Complex<float>> a(kRows * kColumns);
  std::vector<float> real(4 * a.size());
  const auto block = [&](int64_t i, int64_t j) { return &real[2 * (i + 2 * j * kRows)]; };
  for (int64_t j = 0; j < kColumns; ++j) {
    for (int64_t i = 0; i < kRows; ++i) {
      const int64_t e = i + j * kRows;
      a[e] = {pairs[2 * e], pairs[2 * e + 1]};
      float* const of_re = block(i, j);
      float* const of_im = of_re + 2 * kRows;
      of_re[0] = of_im[1] = a[e].re;
      of_re[1] = a[e].im;
      of_im[0] = -a[e].im;
    }
  }
  const std::vector<float> nothing(real.size(), 0);
  const auto split = [&](const auto& matrix) {
    using T = std::decay_t<decltype(matrix[0])>;
    const int64_t reals = kIsComplex<T> ? 1 : 2;
    const auto sent = Send(matrix);
    const auto high = Send(nothing);
    const auto high_copy = Send(nothing);
    const auto low = Send(nothing);
    const auto control = Control<T>();
    const auto part = [&](const auto& memory) {
      return MatrixView<float>{memory.get(), 2 * kColumns, 2 * kRows, 2 * kColumns};
    };
    const MatrixView<T> view = {sent.get(), reals * kRows, reals * kColumns, reals * kRows};
    EXPECT_EQ(
        LaunchSplitTf32(view, {part(high), part(high_copy), part(low)}, control.get(), nullptr),
        cudaSuccess);
    return Parts{Receive(high, real.size()), Receive(high_copy, real.size()),
                 Receive(low, real.size())};
  };
  const Parts got = split(a);
  const Parts expected = split(real);
  EXPECT_TRUE(SameBits(got.high, expected.high));
  EXPECT_TRUE(SameBits(got.high_copy, expected.high_copy));
  EXPECT_TRUE(SameBits(got.low, expected.low));
}

TEST_F(SplitTf32Test, DoesNothingAfterAHalt) {
  const Parts before = Before(300, 3);
  const Parts got = Split(RandomVector<float>((300 + kPadding[0]) * 3, 56), 300, 3, before, true);
  EXPECT_TRUE(SameBits(got.high, before.high));
  EXPECT_TRUE(SameBits(got.high_copy, before.high_copy));
  EXPECT_TRUE(SameBits(got.low, before.low));
}

}  // namespace
}  // namespace crout::cuda::split_tf32_test
