// SPDX-License-Identifier: Apache-2.0

// Random vectors for the GPU tests.
#ifndef CROUT_TESTS_GPU_HARNESS_VECTORS_H_
#define CROUT_TESTS_GPU_HARNESS_VECTORS_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/dtype.h"

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

// Returns whether both have the same size and the same bytes.
template <class T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace crout

#endif  // CROUT_TESTS_GPU_HARNESS_VECTORS_H_
