// SPDX-License-Identifier: Apache-2.0

// Solves with a factorization, for any device.
#ifndef CROUT_KERNELS_JOBS_SOLVE_H_
#define CROUT_KERNELS_JOBS_SOLVE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"
#include "kernels/matrix.h"

namespace crout {

struct SolveOptions {
  const TriangularSolver* solver = nullptr;
  // Replaces `solver` if its prepared data is not reliable enough, or if its measured backward
  // error exceeds AcceptedBackwardError. Null: no replacement.
  const TriangularSolver* fallback = nullptr;
  double solver_tolerance = 0;  // for iterative solvers; also used in refinement and for the bound
  Op op = Op::kNone;
  // Figures to report. All of them require the kept matrix.
  bool verify = true;                // the backward error
  bool componentwise_error = false;  // the componentwise backward error (LAPACK's berr)
  bool error_bound = false;          // a forward error bound (LAPACK gerfs)
  // Refinement ends earlier when a step does not halve the backward error, or at roundoff.
  int max_refinement_steps = 0;
  // Largest number of corrections. If above 0, and the factor has lower precision than B, X is
  // corrected (numerics/correction.h) until its normwise backward error is at most sqrt(n) u, with
  // u the unit roundoff of B's type. Counts applications of the factor. Replaces refinement steps.
  int max_corrections = 0;
  // Refine by the componentwise backward error, which is then also reported.
  bool refine_componentwise = false;

  bool needs_componentwise() const { return componentwise_error || refine_componentwise; }
};

// Reason why another solver than the requested one computed the answer.
enum class SolverFallback : uint8_t {
  kNone,           // the requested solver was used
  kCondition,      // its prepared data is too ill-conditioned
  kBackwardError,  // its answer was discarded because of its backward error
};

struct SolveSummary {
  std::string solver;  // the solver that computed X
  SolverFallback fallback = SolverFallback::kNone;
  // Backward error of X as delivered, rounded to B's type. Set if verified. NaN if X contains NaN
  // or Inf.
  std::optional<double> backward_error;
  // On request, for X as delivered: max over columns and rows of |b - op(A) x|_i / (|op(A)| |x| +
  // |b|)_i.
  std::optional<double> componentwise_error;
  // On request: estimated bound of the maximum over columns of |x - x_true|_inf / |x|_inf, for X as
  // delivered (error_bound.h). Inf if no finite bound is known.
  std::optional<double> forward_error_bound;
  int refinement_steps = 0;  // corrections contained in X
  // Set with max_corrections: applications of the factor after the first solve, over all factors
  // that were tried.
  std::optional<int> corrections;
  AccuracyWarnings accuracy_warnings;
};

// The plan of a solve. Equal ids denote a shared buffer. Created by PlanSolve, then constant.
struct SolvePlan {
  SolveOptions options;
  PackedMatrix shape;      // B as received, without data
  PackedMatrix delivered;  // X as delivered, without data: like B, but complex if A is
  // Type in which X is computed: float64 or complex128. If A is real and B complex, real and
  // imaginary parts are separate columns.
  DType vector_type = DType::kFloat64;
  int64_t columns = 0;
  BufferPlan buffers;
  BufferPlan::Id upload = 0;
  BufferPlan::Id rhs = 0;       // B in vector_type, column-major; the upload if it arrived so
  BufferPlan::Id solution = 0;  // X in vector_type; shares `rhs` if no residual is computed
  BufferPlan::Id packed = 0;    // X as delivered; the upload if it is large enough
  BufferPlan::Id residual = 0;
  BufferPlan::Id scale = 0;     // |op(A)| |X| + |B|
  BufferPlan::Id previous = 0;  // X before a refinement step
  BufferPlan::Id krylov = 0;    // for corrections
  int restart = 0;              // largest dimension of the Krylov spaces
  double accuracy = 0;          // normwise backward error at which corrections end
  // Tolerance of the solver with a factor whose type is less precise than vector_type.
  double lower_tolerance = 0;
  bool needs_residual = false;
  JobBytes bytes;
  double seconds = 0;  // predicted
};

// Plans a solve with a factor of this summary. INVALID_ARGUMENT if a size overflows or no solver is
// given.
absl::StatusOr<SolvePlan> PlanSolve(const SolveOptions& options, const FactorSummary& factor,
                                    PackedMatrix shape);

// FAILED_PRECONDITION if the plan computes residuals and the factor has no matrix.
absl::Status CheckMatrix(const SolvePlan& plan, const FactorSummary& factor, bool has_matrix);

// Called when corrections do not converge. Makes a factor of the same matrix in a wider type, with
// the matrix at the same address, and frees the previous factor. The returned factor is owned by
// the callback and outlives the solve. An error becomes the error of the solve.
using Float64FactorFunction = std::function<absl::StatusOr<const Factorization*>()>;

// Solves op(A) X = B for the right-hand sides in `upload`, which is n x nrhs in device memory,
// packed as planned. Writes X to `out`, plan.delivered.bytes() of host memory or of
// Device::AllocateShareable() memory, in B's precision and layout. `out` is not written if an error
// occurs before X is delivered. Blocks like Factorize. `wider`, if given, is called at most once,
// when corrections end short of the required accuracy; without it, the summary reports the error
// reached.
//
// FAILED_PRECONDITION if the factor is singular (with the pivot's index), B has another number of
// rows, or the solver cannot use the factor or requires preparation. Also if an error, refinement
// or bound is requested without the kept matrix.
//
// INVALID_ARGUMENT for a tolerance that the solver does not accept, and for NaN or Inf in B as in
// Factorize. Also if B overflows when equilibrated like the factor; the message then has B's
// largest entry instead of a position. UNIMPLEMENTED for corrections if the context has no
// KrylovOps.
absl::StatusOr<SolveSummary> Solve(ExecutionContext& context, const SolvePlan& plan,
                                   const Factorization& factor, Buffer upload, std::byte* out,
                                   StopRequested stop, KernelTimings& timings,
                                   const Float64FactorFunction& wider = nullptr);

// PlanSolve, followed by Solve with that plan.
absl::StatusOr<SolveSummary> Solve(ExecutionContext& context, const Factorization& factor,
                                   Buffer upload, PackedMatrix shape, const SolveOptions& options,
                                   std::byte* out, StopRequested stop, KernelTimings& timings);

// Shape of a solution if the matrix or the right-hand side may be complex.
struct SolutionShape {
  PackedMatrix delivered;  // X, without data: like B, but complex if A is
  // Columns of the system that is solved. With a real A, real and imaginary parts of a complex B
  // are separate columns, which halves the work compared with a complex A.
  int64_t columns = 0;
};

// Returns the shape for op(A) X = B, with A real or complex as `field` is. INVALID_ARGUMENT if a
// size overflows.
inline absl::StatusOr<SolutionShape> ShapeSolution(DType field, const PackedMatrix& rhs) {
  SolutionShape shape{rhs, rhs.cols};
  if (IsComplex(field)) {
    shape.delivered.dtype = ComplexOf(rhs.dtype);
  } else if (IsComplex(rhs.dtype) && __builtin_mul_overflow(rhs.cols, 2, &shape.columns)) {
    return absl::InvalidArgumentError(
        "the size of the right-hand sides overflows. Send fewer columns");
  }
  return shape;
}

struct SolverChoice {
  const TriangularSolver* solver = nullptr;
  // Solves again if the measured backward error exceeds AcceptedBackwardError. Null if `solver`
  // needs no such check, or there is no other solver.
  const TriangularSolver* fallback_solver = nullptr;
  SolverFallback fallback = SolverFallback::kNone;
};

// Chooses a solver for a nonsingular factor. `measured`: the backward error of the answer will be
// measured. A solver whose error bound does not guarantee its accuracy is allowed only then.
// FAILED_PRECONDITION if the solver requires preparation, or no solver is accurate enough.
absl::StatusOr<SolverChoice> ChooseSolver(const FactorSummary& factor, const SolveOptions& options,
                                          bool measured);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SOLVE_H_
