// SPDX-License-Identifier: Apache-2.0

// Largest magnitudes.
#ifndef CROUT_KERNELS_NUMERICS_MAX_ABS_H_
#define CROUT_KERNELS_NUMERICS_MAX_ABS_H_

#include <cmath>
#include <cstdint>
#include <span>

#include "kernels/matrix.h"
#include "kernels/scalar.h"

namespace crout {

// Returns the largest |x_i| of real or complex float64 numbers. 0 for an empty span; NaN if any
// element is NaN.
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

// Returns the largest modulus in column j; 0 if the column is empty.
template <class T>
double MaxAbs(const MatrixView<T>& m, int64_t j) {
  if (m.rows == 0) return 0;  // data may be null
  return MaxAbs(std::span<const T>(m.data + j * m.ld, m.rows));
}

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_MAX_ABS_H_
