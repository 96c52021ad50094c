// The interface of a method that brings matrices of any shape to reduced row echelon form.
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
  double tolerance = 0;                // PivotTolerance::absolute
  // Abs1 of the smallest pivot, and of the largest candidate in a column without one: the rank is
  // as certain as they are far apart. Unset without such a column.
  std::optional<double> least_pivot;
  std::optional<double> largest_rejected;

  void Accept(double pivot) { least_pivot = std::min(pivot, least_pivot.value_or(pivot)); }
  void Reject(double candidate) {
    largest_rejected = std::max(candidate, largest_rejected.value_or(candidate));
  }

  int64_t rank() const { return static_cast<int64_t>(pivot_columns.size()); }
};

// The largest candidate of a column has to be larger for a pivot.
struct PivotTolerance {
  double absolute = 0;  // >= 0
  // Whether it is multiplied, column by column, by the largest coefficient of the pivot columns
  // before in what the column is of them, where that is above 1: an error of A that is eliminated
  // grows so.
  bool follows_growth = false;
};

// Immutable and thread-safe; each call runs on its own context.
class EchelonReducer : public NumericalMethod {
 public:
  // Bytes of device memory that Reduce needs beside its argument, a rows x cols matrix.
  virtual absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t rows, int64_t cols) const = 0;

  // Seconds that Reduce is expected to take.
  virtual double PredictSeconds(DType dtype, int64_t rows, int64_t cols) const = 0;

  // Replaces `a` (rows x cols, device memory, finite, neither 0) by its reduced row echelon form,
  // with pivots in its first `eligible` columns alone: row i < rank has its first nonzero, a 1, in
  // column pivot_columns[i], where all other rows are exactly zero; rows from `rank` on are zero in
  // those columns. A column has no pivot if no candidate's Abs1, of the rows that have none yet, is
  // above the tolerance; its candidates are set to zero. Elements that left the range of the
  // type are Inf or NaN.
  //
  // Blocks. `workspace` is device memory of WorkspaceBytes() or more. CANCELLED where `stop`,
  // asked between panels, said so; `a` is undefined then.
  virtual absl::StatusOr<EchelonForm> Reduce(ExecutionContext& context, const AnyMatrix& a,
                                             int64_t eligible, PivotTolerance tolerance,
                                             std::span<std::byte> workspace,
                                             StopRequested stop) const = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_ECHELON_REDUCER_H_
