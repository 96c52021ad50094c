// SPDX-License-Identifier: Apache-2.0

// Estimation of reciprocal condition numbers.
#ifndef CROUT_KERNELS_NUMERICS_CONDITION_H_
#define CROUT_KERNELS_NUMERICS_CONDITION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/operators.h"
#include "kernels/stop_requested.h"

namespace crout {

// Equilibration scales (powers of two) in host memory: n each, or empty if rows or columns were not
// scaled.
struct HostScales {
  std::vector<double> row;
  std::vector<double> col;
};

// Returns the bytes of device memory that EstimateRcond allocates.
absl::StatusOr<size_t> RcondBytes(DType factor_dtype, int64_t n);

// Estimates 1 / (|A|_1 |A^-1|_1) as LAPACK gecon does. `inverse` is the inverse of diag(row) A
// diag(col), which is nonsingular; separate scales allow them and A^-1 to exceed float64's range.
// `norm_one` is |A|_1. The result is at most 1, and 0 if the estimate of |A^-1|_1 overflows.
// Blocks; polls `stop` before each product.
absl::StatusOr<double> EstimateRcond(ExecutionContext& context, InverseOperator& inverse,
                                     const HostScales& scales, double norm_one, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_CONDITION_H_
