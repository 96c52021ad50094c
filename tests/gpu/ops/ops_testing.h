// SPDX-License-Identifier: Apache-2.0

// Shapes, matchers and the fixture for tests of a GPU's matrix operations.
#ifndef CROUT_TESTS_GPU_OPS_OPS_TESTING_H_
#define CROUT_TESTS_GPU_OPS_OPS_TESTING_H_

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include "gmock/gmock.h"
#include "tests/gpu/harness/gpu_testing.h"

namespace crout {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

struct Shape {
  int64_t rows;
  int64_t cols;
};
// Square, tall and wide matrices, from one element to a million.
inline constexpr Shape kShapes[] = {{1, 1},  {3, 3},     {33, 33},  {1, 700}, {700, 1},
                                    {2, 40}, {129, 257}, {257, 64}, {513, 2}, {1000, 1000}};

// Matches a value within the relative `tolerance` of `expected`.
inline ::testing::Matcher<double> Near(double expected, double tolerance = 1e-13) {
  return ::testing::DoubleNear(expected, tolerance * std::abs(expected));
}

class OpsTest : public GpuAndHostTest {};

}  // namespace crout

#endif  // CROUT_TESTS_GPU_OPS_OPS_TESTING_H_
