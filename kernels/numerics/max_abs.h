// The largest of some numbers.
#ifndef CROUT_KERNELS_NUMERICS_MAX_ABS_H_
#define CROUT_KERNELS_NUMERICS_MAX_ABS_H_

#include <cmath>
#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace crout {

// The largest |x_i|, 0 of none; NaN if one of them is.
inline double MaxAbs(std::span<const double> x) {
  double largest = 0;
  for (const double v : x) {
    if (std::isnan(v)) return v;
    if (std::abs(v) > largest) largest = std::abs(v);
  }
  return largest;
}

// Of column j.
inline double MaxAbs(const MatrixView<double>& m, int64_t j) {
  return MaxAbs(std::span(m.data + j * m.ld, m.rows));
}

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_MAX_ABS_H_
