// SPDX-License-Identifier: Apache-2.0

// Tests the device code that splits matrices for tensor cores into TF32 parts. The products of the
// parts must be close to those of the matrices.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "kernels/cuda/crout_lu/split_tf32.cu"
#include "tests/emulation/device_numbers.h"

namespace crout::cuda::split_tf32_emulation_test {
namespace {

// The transposed TF32 parts of a real rows x columns matrix.
class Split {
 public:
  Split(int64_t rows, int64_t columns) : rows_(rows), columns_(columns) {
    for (std::vector<float>& part : parts_) part.assign(rows * columns, NAN);
  }

  Tf32Parts parts() { return {View(0), View(1), View(2)}; }
  double high(int64_t i, int64_t j) const { return At(0, i, j); }
  double high_copy(int64_t i, int64_t j) const { return At(1, i, j); }
  double low(int64_t i, int64_t j) const { return At(2, i, j); }

 private:
  MatrixView<float> View(int part) { return {parts_[part].data(), columns_, rows_, columns_}; }
  float At(int part, int64_t i, int64_t j) const { return parts_[part][j + i * columns_]; }

  int64_t rows_, columns_;
  std::vector<float> parts_[3];
};

// Returns element (i, j) of the product, from the parts and summed in float64. Its error consists
// of the rounding of each factor to 22 bits.
double Product(const Split& a, const Split& b, int64_t depth, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k) {
    EXPECT_EQ(a.high(i, k), a.high_copy(i, k));
    sum += a.high(i, k) * (b.high(k, j) + b.low(k, j)) + a.low(i, k) * b.high_copy(k, j);
  }
  return sum;
}

constexpr double kOff = 0x1p-19;  // largest error of one term, for factors below 1

// Shapes have fewer, as many, and more rows, terms and columns than a tile.
struct Shape {
  int64_t rows, depth, columns;
};
constexpr Shape kShapes[] = {{1, 1, 1}, {16, 16, 32}, {5, 33, 40}, {70, 7, 3}};

TEST(SplitTf32EmulationTest, PartsOfRealFactorsMultiplyToTheirProduct) {
  LuControl<float> control = {-1, 1, 0, 0};
  for (const auto& [rows, depth, columns] : kShapes) {
    std::vector<float> a = Random<float>(rows, depth, 1);
    std::vector<float> b = Random<float>(depth, columns, 2);
    Split left(rows, depth), right(depth, columns);
    LaunchSplitTf32({a.data(), rows, depth, rows}, left.parts(), &control, nullptr);
    LaunchSplitTf32({b.data(), depth, columns, depth}, right.parts(), &control, nullptr);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        double exact = 0;
        for (int64_t k = 0; k < depth; ++k) {
          exact += double{a[i + k * rows]} * double{b[k + j * depth]};
        }
        EXPECT_NEAR(Product(left, right, depth, i, j), exact, depth * kOff) << i << ", " << j;
      }
    }
  }
}

// The kernel expands the left factor to a real matrix. The right factor is split as the real matrix
// of its real and imaginary parts.
TEST(SplitTf32EmulationTest, PartsOfComplexFactorsMultiplyToTheirProduct) {
  LuControl<Complex<float>> control = {-1, 1, 0, 0};
  for (const auto& [rows, depth, columns] : kShapes) {
    std::vector<Complex<float>> a = Random<Complex<float>>(rows, depth, 1);
    std::vector<Complex<float>> b = Random<Complex<float>>(depth, columns, 2);
    Split left(2 * rows, 2 * depth), right(2 * depth, columns);
    const MatrixView<Complex<float>> of_a = {a.data(), rows, depth, rows};
    LaunchSplitTf32(of_a, left.parts(), &control, nullptr);
    LaunchSplitTf32({reinterpret_cast<float*>(b.data()), 2 * depth, columns, 2 * depth},
                    right.parts(), &control, nullptr);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        std::complex<double> exact = 0;
        for (int64_t k = 0; k < depth; ++k) {
          exact += ToHostFloat64(a[i + k * rows]) * ToHostFloat64(b[k + j * depth]);
        }
        const std::complex<double> got = {Product(left, right, 2 * depth, 2 * i, j),
                                          Product(left, right, 2 * depth, 2 * i + 1, j)};
        EXPECT_NEAR(std::abs(got - exact), 0, 2 * depth * kOff) << i << ", " << j;
      }
    }
  }
}

}  // namespace
}  // namespace crout::cuda::split_tf32_emulation_test
