// SPDX-License-Identifier: Apache-2.0

// Range of entry magnitudes that a factorization in a given type supports.
#ifndef CROUT_KERNELS_SAFE_RANGE_H_
#define CROUT_KERNELS_SAFE_RANGE_H_

#include <limits>

#include "kernels/dtype.h"

namespace crout {

// LAPACK laqge's bounds, safe_min / eps and its inverse. A matrix whose largest entry is outside
// this range may underflow or overflow during elimination and must be scaled or refused.
struct SafeRange {
  double least;
  double most;

  // Returns false for NaN.
  bool contains(double magnitude) const { return magnitude >= least && magnitude <= most; }
};

inline SafeRange SafeRangeOf(DType dtype) {
  const auto range = [](auto real) {
    using Limits = std::numeric_limits<decltype(real)>;
    const double least = double{Limits::min()} / double{Limits::epsilon()};
    return SafeRange{least, 1 / least};
  };
  return RealOf(dtype) == DType::kFloat32 ? range(0.0F) : range(0.0);
}

}  // namespace crout

#endif  // CROUT_KERNELS_SAFE_RANGE_H_
