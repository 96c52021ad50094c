// The largest of some numbers.
#ifndef CROUT_KERNELS_NUMERICS_MAX_ABS_H_
#define CROUT_KERNELS_NUMERICS_MAX_ABS_H_

#include <cmath>
#include <cstdint>
#include <span>

#include "kernels/matrix.h"
#include "kernels/scalar.h"

namespace crout {

// The largest |x_i|, 0 of none; NaN if one of them is. Of real or complex float64 numbers.
template <class T>
double MaxAbs(std::span<const T> x) {
  double largest = 0;
  for (const T& v : x) {
    const double magnitude = Modulus(v);
    if (std::isnan(magnitude)) return magnitude;
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}
template <class T>
double MaxAbs(std::span<T> x) {
  return MaxAbs(std::span<const T>(x));
}

// The largest modulus in column j; 0 in an empty one.
template <class T>
double MaxAbs(const MatrixView<T>& m, int64_t j) {
  if (m.rows == 0) return 0;  // with no data, that may be null
  return MaxAbs(std::span<const T>(m.data + j * m.ld, m.rows));
}

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_MAX_ABS_H_
