// SPDX-License-Identifier: Apache-2.0

// Componentwise backward error as in LAPACK gerfs, identical on every device.
#ifndef CROUT_KERNELS_NUMERICS_COMPONENTWISE_H_
#define CROUT_KERNELS_NUMERICS_COMPONENTWISE_H_

#include <cstdint>
#include <limits>

#include "kernels/dtype.h"

namespace crout {

// Guard against small components, for systems of order n. If a component of w = |op(A)| |x| + |b|
// is so small that underflow in it or in the residual matters, gerfs adds `safe1` to both.
struct ComponentwiseGuard {
  // constexpr, so that device code may call it.
  constexpr explicit ComponentwiseGuard(int64_t n)
      : safe1(static_cast<double>(n + 1) * 0x1p-1022),
        safe2(safe1 / UnitRoundoff(DType::kFloat64)) {}

  // Returns the term to add to |r_i| and w_i.
  constexpr double Addend(double w) const { return w > safe2 ? 0 : safe1; }

  // Returns the backward error of one component from |r_i| and w_i. 0 if the residual is 0; NaN if
  // either argument is not finite.
  constexpr double Error(double r, double w) const {
    constexpr double kLargest = std::numeric_limits<double>::max();
    if (!(r <= kLargest && w <= kLargest)) return std::numeric_limits<double>::quiet_NaN();
    if (r == 0) return 0;
    const double addend = Addend(w);
    return (r + addend) / (w + addend);
  }

  double safe1;
  double safe2;
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_COMPONENTWISE_H_
