// Reductions in independent lanes, so that the compiler can use vector registers without changing
// the result.
#ifndef CROUT_KERNELS_HOST_LANES_H_
#define CROUT_KERNELS_HOST_LANES_H_

#include <algorithm>
#include <cstdint>

namespace crout {

inline constexpr int kLanes = 8;

// Largest of 0 and value(i) for i in [0, count); NaN values are passed over.
template <class T, class Value>
T MaxInLanes(int64_t count, const Value& value) {
  T max[kLanes] = {};
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      const T v = value(i + k);
      max[k] = v > max[k] ? v : max[k];
    }
  }
  for (int64_t i = whole; i < count; ++i) {
    const T v = value(i);
    max[i - whole] = v > max[i - whole] ? v : max[i - whole];
  }
  return *std::max_element(max, max + kLanes);
}

}  // namespace crout

#endif  // CROUT_KERNELS_HOST_LANES_H_
