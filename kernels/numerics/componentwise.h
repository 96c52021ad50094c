// LAPACK gerfs' measure of a residual's component, the same on every device.
#ifndef CROUT_KERNELS_NUMERICS_COMPONENTWISE_H_
#define CROUT_KERNELS_NUMERICS_COMPONENTWISE_H_

#include <cstdint>
#include <limits>

#include "kernels/dtype.h"

namespace crout {

// Where w = |op(A)| |x| + |b| has a component so small that what underflowed on the way to it and
// to the residual counts, gerfs adds `safe1` to both. For systems of order n.
struct ComponentwiseGuard {
  // constexpr, so that device code may call it too.
  constexpr explicit ComponentwiseGuard(int64_t n)
      : safe1(static_cast<double>(n + 1) * 0x1p-1022),
        safe2(safe1 / UnitRoundoff(DType::kFloat64)) {}

  // What belongs on top of |r_i|, and of w_i.
  constexpr double Addend(double w) const { return w > safe2 ? 0 : safe1; }

  // The backward error of one component from |r_i| and w_i, 0 without a residual; NaN if either is
  // not finite.
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
