// SPDX-License-Identifier: Apache-2.0

// Factorization of a matrix, for any device.
#ifndef CROUT_KERNELS_JOBS_FACTORIZE_H_
#define CROUT_KERNELS_JOBS_FACTORIZE_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"
#include "kernels/numerics/equilibrate.h"

namespace crout {

struct FactorizeOptions {
  const LuAlgorithm* algorithm = nullptr;
  LuParameters parameters;  // must be accepted by the algorithm
  DType factor_dtype = DType::kFloat64;
  EquilibrateMode equilibrate = EquilibrateMode::kAuto;
  bool keep_matrix = true;
  bool determinant = false;
  // If set, estimates the condition number, using this solver. It must support the algorithm's unit
  // diagonal.
  const TriangularSolver* condition_solver = nullptr;
  // If set, prepares the factor for this solver, unless the matrix is singular.
  const TriangularSolver* prepare = nullptr;
};

// The plan of a factorization. Equal ids denote a shared buffer. Created by PlanFactorize, then
// constant, except for the view in `options.parameters.start`, which must be set before the job
// runs.
struct FactorizePlan {
  FactorizeOptions options;
  PackedMatrix shape;  // A as received, without data
  // If set, A arrives as a sparse matrix (AnySparse) with this number of entries.
  std::optional<int64_t> nonzeros;
  BufferPlan buffers;
  BufferPlan::Id upload = 0;
  BufferPlan::Id matrix = 0;  // A column-major; the upload if it arrived so or is sparse
  // The factor. Shares the buffer of a dense A that is not kept, or a row-major upload whose
  // column-major copy is kept; otherwise a separate buffer.
  BufferPlan::Id lu = 0;
  BufferPlan::Id ipiv = 0;
  BufferPlan::Id scales = 0;
  BufferPlan::Id prepared = 0;  // for a solver
  BufferPlan::Id probe = 0;
  BufferPlan::Id workspace = 0;  // for the algorithm
  JobBytes bytes;
  double seconds = 0;  // predicted
};

// Plans the job for an A of this shape. A row-major A may need more memory than a column-major one,
// never less. `nonzeros` as in the plan; if set, the layout is ignored.
//
// INVALID_ARGUMENT if no algorithm is given, the algorithm does not accept the parameters, the
// shape is not square, only one of factor type and matrix type is complex, or a size overflows.
// FAILED_PRECONDITION if a solver does not support the algorithm's unit diagonal.
absl::StatusOr<FactorizePlan> PlanFactorize(const FactorizeOptions& options, PackedMatrix shape,
                                            std::optional<int64_t> nonzeros = std::nullopt);

// Returns true if a matrix of order n with this number of entries should arrive in sparse form: the
// device has SparseOps, and the sparse form takes at most a quarter of the bytes of the dense one.
// Above about that size, products with many columns are faster in dense form.
bool ArrivesSparse(const Device& device, int64_t n, int64_t nonzeros, DType dtype);

// Factors the n x n matrix in `upload`, which is device memory, packed or sparse as planned.
// The upload is consumed, and becomes the kept matrix if it has the right layout. L, U and the
// interchanges of a sparse matrix are bitwise equal to those of its column-major dense form.
//
// The upload is joined to `context` and may still be arriving; on every exit path its memory is
// freed only after it has arrived. Blocks until the device is done: call it from a worker thread,
// never from an RPC reaction.
//
// A singular matrix is a result with info > 0. INVALID_ARGUMENT for NaN, Inf, or an overflow in the
// conversion to float32 that equilibration does not prevent, with the 0-based row and column of the
// first in payload order; values that underflow become subnormal or zero. UNIMPLEMENTED for a
// sparse matrix if the context has no SparseOps. CANCELLED if `stop` returned true.
absl::StatusOr<Factorization> Factorize(ExecutionContext& context, const FactorizePlan& plan,
                                        Buffer upload, StopRequested stop, KernelTimings& timings);

// PlanFactorize, followed by Factorize with that plan.
absl::StatusOr<Factorization> Factorize(ExecutionContext& context, Buffer upload,
                                        PackedMatrix shape, const FactorizeOptions& options,
                                        StopRequested stop, KernelTimings& timings);

// Returns the result for an n x n matrix that is singular by its structure: info = n and no
// factors. `empty_index` is the 1-based index of the row or column that `reason` refers to. The
// norms are 0.
Factorization SingularFactorization(const FactorizeOptions& options, DType matrix_dtype, int64_t n,
                                    SingularReason reason, int64_t empty_index);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_FACTORIZE_H_
