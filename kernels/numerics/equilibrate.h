// SPDX-License-Identifier: Apache-2.0

// Decides whether to equilibrate a matrix.
#ifndef CROUT_KERNELS_NUMERICS_EQUILIBRATE_H_
#define CROUT_KERNELS_NUMERICS_EQUILIBRATE_H_

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/matrix_ops.h"

namespace crout {

enum class EquilibrateMode : uint8_t { kAuto, kOn, kOff };

struct ScaleDecision {
  bool rows = false;
  bool cols = false;

  bool any() const { return rows || cols; }
};

// Applies LAPACK laqge's criteria for kAuto in the factor's type: scale rows if row_condition < 0.1
// or the largest entry is outside [safe_min / eps, eps / safe_min]; scale columns if col_condition
// < 0.1. kOn scales both. A matrix with a zero row or column is never scaled.
ScaleDecision DecideScaling(EquilibrateMode mode, const ScaleStats& stats, DType factor_dtype);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_EQUILIBRATE_H_
