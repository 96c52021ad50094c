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
// What a call is given is device memory, but for the members once more as the host can read them;
// all of it is in use until Synchronize(). A workspace has the bytes that the method asks for, or
// more. A stop leaves what the call writes undefined.
class BatchLu : public NumericalMethod {
 public:
  // Memory that a call needs beside its arguments.
  struct WorkspaceBytes {
    size_t device = 0;
    size_t host = 0;
  };
  struct Workspace {
    std::span<std::byte> device;
    std::span<std::byte> host;
  };

  // Of Factor, Solve and BackwardErrors, for any batch of this extent (`diagonals` may be larger).
  virtual absl::StatusOr<WorkspaceBytes> FactorWorkspaceBytes(const BatchExtent& a) const = 0;
  virtual absl::StatusOr<WorkspaceBytes> SolveWorkspaceBytes(const BatchExtent& lu) const = 0;
  virtual absl::StatusOr<WorkspaceBytes> ErrorWorkspaceBytes(const BatchExtent& a) const = 0;

  // Seconds that Factor is expected to take: the cost model of admission and RetryInfo.
  virtual double PredictFactorSeconds(const BatchExtent& a) const = 0;

  // Enqueues the factorization and fills `factors`. Members of any shape, empty ones too. One that
  // is singular, or holds NaN or Inf, is the affair of its own part of `factors`.
  virtual absl::Status Factor(ExecutionContext& context, const IrregularBatch& a,
                              std::span<const BatchMember> on_host, const BatchFactors& factors,
                              const Workspace& workspace, StopRequested stop) const = 0;

  // Enqueues op(A_i) X_i = B_i for the members of which `b` has columns, which are square. Member i
  // of `b`, of as many members and of the same type as `lu`, is B_i on entry and X_i on exit; NaN
  // where A_i is singular. `on_host`: of `lu`.
  virtual absl::Status Solve(ExecutionContext& context, Op op, const IrregularBatch& lu,
                             std::span<const BatchMember> on_host, const BatchFactors& factors,
                             const IrregularBatch& b, const Workspace& workspace,
                             StopRequested stop) const = 0;

  // Enqueues errors[i] := max over columns j of
  // |b_j - op(A_i) x_j|_inf / (|op(A_i)|_inf |x_j|_inf + |b_j|_inf), in float64, 0/0 being 0; NaN
  // where anything in it is not finite. 0 for a member without columns, of which nothing is read.
  // `x` and `b` lie alike.
  virtual absl::Status BackwardErrors(ExecutionContext& context, Op op, const IrregularBatch& a,
                                      const IrregularBatch& x, const IrregularBatch& b,
                                      double* errors, const Workspace& workspace) const = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_BATCH_LU_H_
