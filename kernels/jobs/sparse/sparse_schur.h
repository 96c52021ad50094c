// SPDX-License-Identifier: Apache-2.0

// The Schur complement of selected unknowns of a sparse matrix.
#ifndef CROUT_KERNELS_JOBS_SPARSE_SPARSE_SCHUR_H_
#define CROUT_KERNELS_JOBS_SPARSE_SPARSE_SCHUR_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/jobs/schur.h"
#include "kernels/jobs/sparse/sparse_factorize.h"

namespace crout {

// The plan of the job. Created by PlanSparseSchur, then constant.
struct SparseSchurPlan {
  SparseFactorizePlan factor;
  PackedMatrix complement;  // S as delivered: A's type, column-major, without data
  BufferPlan buffers;
  BufferPlan::Id matrix = 0;
  BufferPlan::Id packed = 0;   // S as delivered
  BufferPlan::Id vectors = 0;  // v, (0, S z) and the residual, n each, in the wide type
  JobBytes bytes;
  double seconds = 0;  // predicted
};

// Plans the job. INVALID_ARGUMENT unless the analysis of `factor` has kept unknowns, its method
// supports complements, and its options keep A and request neither condition nor determinant. Also
// INVALID_ARGUMENT if a size overflows.
absl::StatusOr<SparseSchurPlan> PlanSparseSchur(const SparseFactorizePlan& factor);

// With A's kept unknowns last, A = [A11 A12; A21 A22]: factors A11 and writes S = A22 - A21 A11^-1
// A12 to `out`, host memory of plan.complement.bytes(). Rows and columns of S follow the order in
// which the unknowns were passed to the analysis. `upload` as in FactorizeSparse. The factor in the
// result has no parts and cannot be used for solves.
//
// Pivots are chosen within A11. With `growth`, rejected pivots are delayed as in FactorizeSparse.
// If a pivot was perturbed, `backward_error` shows the effect. Errors as in FactorizeSparse.
absl::StatusOr<SchurResult> ComputeSparseSchur(ExecutionContext& context,
                                               const SparseSchurPlan& plan, Buffer upload,
                                               std::byte* out, StopRequested stop,
                                               KernelTimings& timings,
                                               SparseGrowth* growth = nullptr);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SPARSE_SPARSE_SCHUR_H_
