// SPDX-License-Identifier: Apache-2.0

// Random vectors for the GPU tests.
#ifndef CROUT_TESTS_GPU_HARNESS_VECTORS_H_
#define CROUT_TESTS_GPU_HARNESS_VECTORS_H_

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/dtype.h"
#include "tests/support/matrices/gallery.h"

namespace crout {

// Returns `count` numbers, uniform in [-1, 1). The parts of a complex number are independent.
template <class T>
std::vector<T> RandomVector(int64_t count, uint64_t seed) {
  std::mt19937_64 generator(seed);
  using Part = RealPart<T>;
  const auto next = [&] { return static_cast<Part>(std::ldexp(generator() >> 11, -52) - 1); };
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (kIsComplex<T>) {
      const Part real = next();
      value = {real, next()};
    } else {
      value = next();
    }
  }
  return values;
}

using testing::SameBits;

}  // namespace crout

#endif  // CROUT_TESTS_GPU_HARNESS_VECTORS_H_
