// Factoring a matrix, written once for every device.
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
  LuParameters parameters;  // that the algorithm takes
  DType factor_dtype = DType::kFloat64;
  EquilibrateMode equilibrate = EquilibrateMode::kAuto;
  bool keep_matrix = true;
  bool determinant = false;
  // Set: estimate the condition number, solving with this. It supports the algorithm's unit
  // diagonal.
  const TriangularSolver* condition_solver = nullptr;
  // Set: prepare the factor, unless it is singular, for this solver.
  const TriangularSolver* prepare = nullptr;
};

// A factorization, decided before it runs, and its buffers. Where two ids are equal one buffer
// serves for both. Made by PlanFactorize, then constant, but for the view of
// `options.parameters.start`, which has to be there when it runs.
struct FactorizePlan {
  FactorizeOptions options;
  PackedMatrix shape;  // of A as it arrives, without data
  // Set: A arrives as a sparse matrix (AnySparse) with so many entries.
  std::optional<int64_t> nonzeros;
  BufferPlan buffers;
  BufferPlan::Id upload = 0;
  BufferPlan::Id matrix = 0;  // A by columns: the upload, where it arrived so, or is sparse
  // The factor: a dense A, if that is not kept, or else its upload by rows, or a buffer of its own.
  BufferPlan::Id lu = 0;
  BufferPlan::Id ipiv = 0;
  BufferPlan::Id scales = 0;
  BufferPlan::Id prepared = 0;  // for a solver
  BufferPlan::Id probe = 0;
  BufferPlan::Id workspace = 0;  // of the algorithm
  JobBytes bytes;
  double seconds = 0;  // predicted
};

// For an A of this shape; by rows it may take more than by columns, never less. `nonzeros`: as the
// plan has it; the layout then says nothing. INVALID_ARGUMENT for options without an algorithm,
// parameters that it does not take, a shape that is not square, a factor that is real where the
// matrix is complex or the reverse, or a size that overflows; FAILED_PRECONDITION where a solver
// does not support the algorithm's unit diagonal.
absl::StatusOr<FactorizePlan> PlanFactorize(const FactorizeOptions& options, PackedMatrix shape,
                                            std::optional<int64_t> nonzeros = std::nullopt);

// Whether a matrix of order n with so many entries should arrive there as a sparse one: the device
// has SparseOps, and the matrix takes at most a quarter of the bytes so that it takes in full. From
// about there on products with many columns are faster with the dense one.
bool ArrivesSparse(const Device& device, int64_t n, int64_t nonzeros, DType dtype);

// Factors the n x n matrix in `upload` (device memory, packed as the plan's shape says, or sparse;
// consumed, and reused as the kept matrix where it has the right layout). L, U and the interchanges
// of a sparse one have the bits that its dense form by columns gives. Its upload is joined to
// `context` and need not have ended: on every way out the memory is freed only after it. Blocks
// until the device is done: call it from a worker thread, never from an RPC reaction.
// INVALID_ARGUMENT for NaN, Inf or a conversion that overflows (to float32, unless equilibration
// brings it into range; what underflows becomes subnormal or zero), with row and column (0-based)
// of the first in payload order; UNIMPLEMENTED for a sparse one where the context has no SparseOps;
// CANCELLED when stopped. A singular matrix is a result with info > 0.
absl::StatusOr<Factorization> Factorize(ExecutionContext& context, const FactorizePlan& plan,
                                        Buffer upload, StopRequested stop, KernelTimings& timings);

// PlanFactorize, and then Factorize by that plan.
absl::StatusOr<Factorization> Factorize(ExecutionContext& context, Buffer upload,
                                        PackedMatrix shape, const FactorizeOptions& options,
                                        StopRequested stop, KernelTimings& timings);

// The result for an n x n matrix in which a row or column, number `empty_index` from 1, is empty:
// info = n, and no factors. The norms are left at 0.
Factorization SingularFactorization(const FactorizeOptions& options, DType matrix_dtype, int64_t n,
                                    SingularReason reason, int64_t empty_index);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_FACTORIZE_H_
