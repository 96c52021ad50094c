// The Schur complement of chosen unknowns of a sparse matrix.
#ifndef CROUT_KERNELS_JOBS_SPARSE_SCHUR_H_
#define CROUT_KERNELS_JOBS_SPARSE_SCHUR_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/jobs/schur.h"
#include "kernels/jobs/sparse_factorize.h"

namespace crout {

// Decided before it runs, with its buffers. Made by PlanSparseSchur, then constant.
struct SparseSchurPlan {
  SparseFactorizePlan factor;
  PackedMatrix complement;  // S as it is delivered: of A's type, by columns, without data
  BufferPlan buffers;
  BufferPlan::Id matrix = 0;
  BufferPlan::Id packed = 0;   // S as it is delivered
  BufferPlan::Id vectors = 0;  // v, (0, S z) and the residual, n each, in the wide type
  JobBytes bytes;
  double seconds = 0;  // predicted
};

// `factor`: planned by an analysis with kept unknowns and a method that leaves complements, keeping
// A, without condition and determinant. INVALID_ARGUMENT otherwise, and for a size that overflows.
absl::StatusOr<SparseSchurPlan> PlanSparseSchur(const SparseFactorizePlan& factor);

// With A's kept unknowns last, A = [A11 A12; A21 A22], factors A11 and leaves S = A22 - A21 A11^-1
// A12, rows and columns in the order in which the unknowns were given to the analysis, in `out`,
// host memory of plan.complement.bytes(). `upload`: as FactorizeSparse has it. The factor in the
// result has no parts: nothing can be solved with it. Pivots are chosen within A11; with `growth`
// those that are not acceptable are delayed, as FactorizeSparse does. Where one was perturbed
// `backward_error` shows what that costs. Errors as FactorizeSparse's.
absl::StatusOr<SchurResult> ComputeSparseSchur(ExecutionContext& context,
                                               const SparseSchurPlan& plan, Buffer upload,
                                               std::byte* out, StopRequested stop,
                                               KernelTimings& timings,
                                               SparseGrowth* growth = nullptr);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SPARSE_SCHUR_H_
