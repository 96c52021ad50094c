// Solving with a factorization, written once for every device.
#ifndef CROUT_KERNELS_JOBS_SOLVE_H_
#define CROUT_KERNELS_JOBS_SOLVE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"

namespace crout {

struct SolveOptions {
  const TriangularSolver* solver = nullptr;
  // Takes the place of a `solver` that does not trust what it prepared, or whose measured backward
  // error is above AcceptedBackwardError. Null: no other would do.
  const TriangularSolver* fallback = nullptr;
  double solver_tolerance = 0;  // of a solver that takes one, in refinement and the bound too
  Op op = Op::kNone;
  // What to report. All of it needs the kept matrix.
  bool verify = true;                // the backward error
  bool componentwise_error = false;  // the componentwise backward error (LAPACK's berr)
  bool error_bound = false;          // a forward error bound (LAPACK gerfs)
  int max_refinement_steps = 0;  // stops early once a step no longer halves the backward error, or
                                 // it is at roundoff
  // Above 0: with a factor in lower precision than B, X is corrected (numerics/correction.h) until
  // its normwise backward error is at most sqrt(n) u, u the unit roundoff of B's type; at most so
  // many applications of the factor. In place of refinement steps.
  int max_corrections = 0;
  // Refinement goes by the componentwise backward error, which is then reported too.
  bool refine_componentwise = false;

  bool wants_componentwise() const { return componentwise_error || refine_componentwise; }
};

// Why another solver than the one that was asked for gave the answer.
enum class SolverFallback : uint8_t {
  kNone,           // it is that one's
  kCondition,      // what was prepared for it is too ill-conditioned
  kBackwardError,  // its answer had too large a backward error, and was dropped
};

struct SolveSummary {
  std::string solver;  // whose answer X is
  SolverFallback fallback = SolverFallback::kNone;
  // When verified: of X as delivered, rounded to B's type. NaN if X holds a NaN or Inf.
  std::optional<double> backward_error;
  // On request, likewise: max over columns and rows of |b - op(A) x|_i / (|op(A)| |x| + |b|)_i.
  std::optional<double> componentwise_error;
  // On request: estimate of a bound on max over columns of |x - x_true|_inf / |x|_inf, of X as
  // delivered (error_bound.h). Inf where no finite bound is known.
  std::optional<double> forward_error_bound;
  int refinement_steps = 0;  // whose corrections X holds
  // With max_corrections: how often the factor was applied after the first solve, by each of the
  // factors that were tried.
  std::optional<int> corrections;
  Doubts doubts;
};

// A solve, decided before it runs, and its buffers. Where two ids are equal one buffer serves for
// both. Made by PlanSolve, then constant.
struct SolvePlan {
  SolveOptions options;
  PackedMatrix shape;      // of B as it arrives, without data
  PackedMatrix delivered;  // of X as it is delivered, likewise: B's, but complex where A is
  // In which X is computed: float64 or complex128. Where A is real and B complex, its real parts
  // and its imaginary ones are columns of their own.
  DType vector_type = DType::kFloat64;
  int64_t columns = 0;
  BufferPlan buffers;
  BufferPlan::Id upload = 0;
  BufferPlan::Id rhs = 0;       // B in vector_type, by columns: the upload, where it arrived so
  BufferPlan::Id solution = 0;  // X in vector_type: B, where no residual is taken
  BufferPlan::Id packed = 0;    // X as it is delivered: the upload, where that has room
  BufferPlan::Id residual = 0;
  BufferPlan::Id scale = 0;     // |op(A)| |X| + |B|
  BufferPlan::Id previous = 0;  // X before a refinement step
  BufferPlan::Id krylov = 0;    // of corrections
  int restart = 0;              // their spaces' most vectors
  double accuracy = 0;          // normwise backward error that ends them
  double lower_tolerance = 0;   // the solver's, of a factor in lower precision than vector_type
  bool needs_residual = false;
  JobBytes bytes;
  double seconds = 0;  // predicted
};

// With a factor of which so much is known. INVALID_ARGUMENT for a size that overflows or options
// without a solver.
absl::StatusOr<SolvePlan> PlanSolve(const SolveOptions& options, const FactorSummary& factor,
                                    PackedMatrix shape);

// FAILED_PRECONDITION where the plan has residuals to take and the factor has no matrix.
absl::Status CheckMatrix(const SolvePlan& plan, const FactorSummary& factor, bool has_matrix);

// Where no correction helps: makes a factor of the same matrix, kept at the same place, in a wider
// type, and gives up the one before. It is the caller's, and lives as long as the solve. An error
// is the solve's.
using WiderFactor = std::function<absl::StatusOr<const Factorization*>()>;

// Solves op(A) X = B for the right-hand sides in `upload` (n x nrhs, device memory, packed as the
// plan's shape says). X goes to `out`, host memory of the plan's delivered.bytes(), in B's
// precision and layout; nothing is written there unless the solve gets that far. Blocks as
// Factorize does. FAILED_PRECONDITION if the factor is singular (with the pivot's index), B has
// another number of rows, the solver cannot use the factor or needs one that was prepared, or an
// error, refinement or a bound is asked for without the kept matrix; INVALID_ARGUMENT for a
// tolerance that the solver does not take, for NaN or Inf in B as in Factorize, and where B
// overflows when it is equilibrated as the factor is (with B's largest entry instead of a
// position); UNIMPLEMENTED for corrections where the context has no KrylovOps. `wider`, where
// given, is asked once, when corrections have ended short of the accuracy; without it the summary
// says so.
absl::StatusOr<SolveSummary> Solve(ExecutionContext& context, const SolvePlan& plan,
                                   const Factorization& factor, Buffer upload, std::byte* out,
                                   StopRequested stop, KernelTimings& timings,
                                   const WiderFactor& wider = nullptr);

// PlanSolve, and then Solve by that plan.
absl::StatusOr<SolveSummary> Solve(ExecutionContext& context, const Factorization& factor,
                                   Buffer upload, PackedMatrix shape, const SolveOptions& options,
                                   std::byte* out, StopRequested stop, KernelTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SOLVE_H_
