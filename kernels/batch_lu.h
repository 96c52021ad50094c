// SPDX-License-Identifier: Apache-2.0

// Interface of LU factorization and triangular solves for irregular batches on one device.
#ifndef CROUT_KERNELS_BATCH_LU_H_
#define CROUT_KERNELS_BATCH_LU_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/irregular_batch.h"
#include "kernels/lu_parameters.h"
#include "kernels/numerical_method.h"
#include "kernels/stop_requested.h"

namespace crout {

// Factors every member of a batch in place, PA = LU, with partial pivoting and the unit diagonal in
// L (not stored), and solves with these factors. The result for a member is bitwise independent of
// the other members. Immutable and thread-safe; each call runs on its own context.
//
// All arguments are device memory, except `on_host`, which is the member table in host memory. All
// of them are in use until Synchronize(). A workspace has at least the bytes that the method
// requests. A stopped call leaves its outputs undefined.
class BatchLu : public NumericalMethod {
 public:
  // Workspace of a call, in bytes.
  struct WorkspaceBytes {
    size_t device = 0;
    size_t host = 0;
  };
  struct Workspace {
    std::span<std::byte> device;
    std::span<std::byte> host;
  };

  // Workspace of Factor, Solve and BackwardErrors, valid for any batch of this extent. The batch
  // may have a smaller `diagonals` than the extent.
  virtual absl::StatusOr<WorkspaceBytes> FactorWorkspaceBytes(const BatchExtent& a) const = 0;
  virtual absl::StatusOr<WorkspaceBytes> SolveWorkspaceBytes(const BatchExtent& lu) const = 0;
  virtual absl::StatusOr<WorkspaceBytes> ErrorWorkspaceBytes(const BatchExtent& a) const = 0;

  // Predicted seconds for Factor. Used by admission and RetryInfo.
  virtual double PredictFactorSeconds(const BatchExtent& a) const = 0;

  // Enqueues the factorization and fills `factors`. Members may have any shape, including empty. A
  // member that is singular, or contains NaN or Inf, affects only its own part of `factors`.
  virtual absl::Status Factor(ExecutionContext& context, const IrregularBatch& a,
                              std::span<const BatchMember> on_host, const BatchFactors& factors,
                              const Workspace& workspace, StopRequested stop) const = 0;

  // Enqueues the solves op(A_i) X_i = B_i for all members for which `b` has columns; these members
  // must be square. `b` has as many members as `lu`, of the same type. Member i of `b` is B_i on
  // entry and X_i on exit, or NaN if A_i is singular. `on_host` is the member table of `lu`.
  virtual absl::Status Solve(ExecutionContext& context, Op op, const IrregularBatch& lu,
                             std::span<const BatchMember> on_host, const BatchFactors& factors,
                             const IrregularBatch& b, const Workspace& workspace,
                             StopRequested stop) const = 0;

  // Enqueues errors[i] := max over columns j of
  //   |b_j - op(A_i) x_j|_inf / (|op(A_i)|_inf |x_j|_inf + |b_j|_inf),
  // computed in float64 with 0/0 = 0. The result is NaN if any value involved is not finite. It is
  // 0 for a member without columns, whose data is not read. `x` and `b` have the same layout.
  virtual absl::Status BackwardErrors(ExecutionContext& context, Op op, const IrregularBatch& a,
                                      const IrregularBatch& x, const IrregularBatch& b,
                                      double* errors, const Workspace& workspace) const = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_BATCH_LU_H_
