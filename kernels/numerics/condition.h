// Reciprocal condition numbers from an inverse.
#ifndef CROUT_KERNELS_NUMERICS_CONDITION_H_
#define CROUT_KERNELS_NUMERICS_CONDITION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/inverse_operator.h"
#include "kernels/stop_requested.h"

namespace crout {

// Powers of two that equilibrated a matrix, in host memory: n each, or none where its rows, or
// columns, were not scaled.
struct HostScales {
  std::vector<double> row;
  std::vector<double> col;
};

// Bytes of device memory that EstimateRcond owns.
absl::StatusOr<size_t> RcondBytes(DType factor_dtype, int64_t n);

// 1 / (|A|_1 est(|A^-1|_1)), LAPACK gecon, where `inverse` is of diag(row) A diag(col), which is
// not singular. That the scales are apart from it lets them, and A^-1, leave float64's range.
// `norm_one` is |A|_1. At most 1; 0 where the estimate overflows. Blocks; `stop` is asked before
// each product.
absl::StatusOr<double> EstimateRcond(ExecutionContext& context, InverseOperator& inverse,
                                     const HostScales& scales, double norm_one, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_CONDITION_H_
