// Vectors of numbers for the tests of the GPU.
#ifndef CROUT_TESTS_GPU_VECTORS_H_
#define CROUT_TESTS_GPU_VECTORS_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace crout {

// `count` numbers, uniform in [-1, 1).
template <class T>
std::vector<T> RandomVector(int64_t count, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(std::ldexp(generator() >> 11, -52) - 1);
  return values;
}

// Same size and same bytes.
template <class T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace crout

#endif  // CROUT_TESTS_GPU_VECTORS_H_
