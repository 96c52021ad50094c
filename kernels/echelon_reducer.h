// SPDX-License-Identifier: Apache-2.0

// Interface of reduction to reduced row echelon form, for matrices of any shape.
#ifndef CROUT_KERNELS_ECHELON_REDUCER_H_
#define CROUT_KERNELS_ECHELON_REDUCER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/matrix.h"
#include "kernels/numerical_method.h"
#include "kernels/stop_requested.h"

namespace crout {

struct EchelonForm {
  std::vector<int64_t> pivot_columns;  // 0-based, ascending
  double tolerance = 0;                // the PivotTolerance::absolute used
  // Abs1 of the smallest accepted pivot, and of the largest candidate in a column without a pivot.
  // The wider the gap between them, the more reliable the rank. `largest_rejected` is unset if
  // every column has a pivot.
  std::optional<double> least_pivot;
  std::optional<double> largest_rejected;
  // Abs1 of the largest element of U in the eligible columns. U consists of the rows that got a
  // pivot, each as it was before the division by its pivot.
  double max_abs_u = 0;
  // Element growth: the larger of max_abs_u and the largest element of the eligible columns, over
  // the latter. Set by ReduceToEchelonForm. Rounding errors grow by this factor.
  double growth = 1;

  void Accept(double pivot) { least_pivot = std::min(pivot, least_pivot.value_or(pivot)); }
  void Reject(double candidate) {
    largest_rejected = std::max(candidate, largest_rejected.value_or(candidate));
  }

  int64_t rank() const { return static_cast<int64_t>(pivot_columns.size()); }
};

// Threshold for pivots: a column has a pivot if its largest candidate exceeds the tolerance.
struct PivotTolerance {
  double absolute = 0;  // >= 0
  // If true, the tolerance of a column is multiplied by max(1, c), where c is the largest multiple
  // of a preceding pivot column that elimination subtracts from this column. Elimination amplifies
  // errors of A by this factor.
  bool follows_growth = false;
};

// Immutable and thread-safe; each call runs on its own context.
class EchelonReducer : public NumericalMethod {
 public:
  // Returns the workspace of Reduce in bytes of device memory, for a rows x cols matrix.
  virtual absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t rows, int64_t cols) const = 0;

  // Predicted seconds for Reduce.
  virtual double PredictSeconds(DType dtype, int64_t rows, int64_t cols) const = 0;

  // Replaces `a` by its reduced row echelon form, with pivots only in the first `eligible` columns.
  // `a` is rows x cols in device memory, finite, with rows, cols > 0. Row i < rank has a leading 1
  // in column pivot_columns[i], where all other rows are exactly zero. Rows from `rank` on are zero
  // in the eligible columns.
  //
  // A column has no pivot if no candidate in the remaining rows has an Abs1 above the tolerance;
  // its candidates are set to zero. Elements that overflow the type are Inf or NaN.
  //
  // Blocks. `workspace` is device memory of at least WorkspaceBytes(). Polls `stop` between panels;
  // if it returns true, the status is CANCELLED and `a` is undefined.
  virtual absl::StatusOr<EchelonForm> Reduce(ExecutionContext& context, const AnyMatrix& a,
                                             int64_t eligible, PivotTolerance tolerance,
                                             std::span<std::byte> workspace,
                                             StopRequested stop) const = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_ECHELON_REDUCER_H_
