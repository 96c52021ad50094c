// The interface of an LU method for irregular batches on one device, and of solves with its
// factors.
#ifndef CROUT_KERNELS_BATCH_LU_H_
#define CROUT_KERNELS_BATCH_LU_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/irr_lu.h"
#include "kernels/irregular_batch.h"
#include "kernels/lu_parameters.h"
#include "kernels/numerical_method.h"
#include "kernels/stop_requested.h"

namespace crout {

// Factors every member of a batch in place, PA = LU with partial pivoting, the unit diagonal in L
// (which is not stored), and solves with what it left. What becomes of a member has the same bits
// whatever the other members are. Immutable and thread-safe; each call runs on its own context.
//
// All arguments are device memory, in use until Synchronize(). `workspace` has the bytes that the
// method asks for, or more. A stop leaves what the call writes undefined.
class BatchLu : public NumericalMethod {
 public:
  // Bytes of device memory that Factor needs beside its arguments, for any batch of this extent.
  virtual absl::StatusOr<size_t> FactorWorkspaceBytes(const BatchExtent& a) const = 0;
  // The same of Solve, and of BackwardErrors.
  virtual absl::StatusOr<size_t> SolveWorkspaceBytes(const BatchExtent& lu) const = 0;
  virtual absl::StatusOr<size_t> ErrorWorkspaceBytes(const BatchExtent& a) const = 0;

  // Seconds that Factor is expected to take: the cost model of admission and RetryInfo.
  virtual double PredictFactorSeconds(const BatchExtent& a) const = 0;

  // Enqueues the factorization and fills `factors`. Members of any shape, empty ones too. One that
  // is singular, or holds NaN or Inf, is the affair of its own part of `factors`.
  virtual absl::Status Factor(ExecutionContext& context, const IrregularBatch& a,
                              const BatchFactors& factors, std::span<std::byte> workspace,
                              StopRequested stop) const = 0;

  // Enqueues op(A_i) X_i = B_i for the members of which `b` has columns, which are square. Member i
  // of `b`, of as many members and of the same type as `lu`, is B_i on entry and X_i on exit; NaN
  // where A_i is singular.
  virtual absl::Status Solve(ExecutionContext& context, Op op, const IrregularBatch& lu,
                             const BatchFactors& factors, const IrregularBatch& b,
                             std::span<std::byte> workspace, StopRequested stop) const = 0;

  // Enqueues errors[i] := max over columns j of
  // |b_j - op(A_i) x_j|_inf / (|op(A_i)|_inf |x_j|_inf + |b_j|_inf), in float64, 0/0 being 0; NaN
  // where anything in it is not finite. 0 for a member without columns, of which nothing is read.
  // `x` and `b` lie alike.
  virtual absl::Status BackwardErrors(ExecutionContext& context, Op op, const IrregularBatch& a,
                                      const IrregularBatch& x, const IrregularBatch& b,
                                      double* errors, std::span<std::byte> workspace) const = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_BATCH_LU_H_
