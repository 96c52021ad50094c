// SPDX-License-Identifier: Apache-2.0

// One step of a time series: solves the next system from the data of the last one.
#ifndef CROUT_KERNELS_JOBS_SERIES_SERIES_STEP_H_
#define CROUT_KERNELS_JOBS_SERIES_SERIES_STEP_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/costs/series_model.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "kernels/jobs/sparse/sparse_factorize.h"
#include "kernels/value_map.h"

namespace crout {

// X of the last step: n x columns, column-major, float64 or complex128.
inline constexpr std::string_view kSolutionPart = "solution";
// A LowRankUpdate in the type of solutions, from the factor's matrix to the matrix in the same
// parts.
inline constexpr std::string_view kUpdatePart = "update";
// The block of the last text's ValueMap.
inline constexpr std::string_view kValueMapPart = "value map";

// The solvers of a factor, as in SolveOptions.
struct SolverPair {
  const TriangularSolver* solver = nullptr;
  const TriangularSolver* fallback = nullptr;
};

struct SeriesStepOptions {
  // Options of a new factor. The matrix is always kept with it; keep_matrix is ignored.
  FactorizeOptions factor;
  // If set, replaces `factor`: the new factor is sparse, planned by the analysis of the pattern,
  // with the matrix kept.
  std::optional<SparseFactorizePlan> sparse;
  SolverPair with_old;  // used if there is an old factor
  SolverPair with_new;
  Op op = Op::kNone;
  // Required normwise backward error of every right-hand side. 0 selects sqrt(n) u, with u the unit
  // roundoff of the right-hand sides' type. Values below u count as u.
  double accuracy = 0;
  // Limits of the attempt with the old factor: applications, and their cost (as in Correction). 0
  // applications: make a new factor at once.
  int max_iterations = 0;
  double max_cost = std::numeric_limits<double>::infinity();
  // The attempt is given up earlier if its estimated remaining cost (as in Correction) exceeds
  // `max_remaining`, typically the cost of a new factor, but not before `min_iterations`.
  double max_remaining = std::numeric_limits<double>::infinity();
  int min_iterations = 0;
  // If true, the old factor is used with Woodbury's formula while all changes since it was made are
  // of low rank, in total at most MaxUpdateRank.
  bool update = false;
};

// Returns the largest total rank of changes for order n. At this rank, a new factor is already
// cheaper than the products and solve of each step.
int64_t MaxUpdateRank(int64_t n);

// Returns the predicted seconds of an iteration with an old factor and `solver`, for use until one
// was measured.
double PredictIterationSeconds(const TriangularSolver& solver, const FactorSummary& factor,
                               int64_t nrhs);

// Source of a step's A.
enum class SeriesSource : uint8_t {
  kUpload,  // it arrives
  kKept,    // the last step's matrix, which was solved with an earlier matrix's factor
  kFactor,  // the matrix of the factor itself; a new factor would be identical, so none is made
};

// A change that derives A from the existing matrix.
struct MatrixChange {
  enum class Kind : uint8_t {
    kEntries,  // new values for some entries: an EntryList
    kLowRank,  // A + U V^T: U (n x rank), then V^T (rank x n), both column-major
    kValues,   // values of a text's lines, in order, summed into elements by a map
  };

  Kind kind = Kind::kEntries;
  int64_t size = 0;        // number of entries, rank, or number of values
  ValueMapShape map = {};  // for kValues
};

// Returns the bytes of a change as received, for a matrix of order n. INVALID_ARGUMENT if the size
// is below 1, more than n^2 entries, a rank above n, or a number of values other than the map's
// lines.
absl::StatusOr<size_t> ChangeBytes(const MatrixChange& change, int64_t n, DType dtype);

struct SeriesMatrix {
  SeriesSource source = SeriesSource::kUpload;
  // The matrix as received, or as kept (then column-major), without data. The layout is ignored if
  // it is sparse.
  PackedMatrix shape;
  std::optional<int64_t> nonzeros;  // set if sparse
  // If set, this change arrives instead of a matrix: A is the matrix of `source` (not kUpload) with
  // the change applied.
  std::optional<MatrixChange> change = std::nullopt;
  // Rank of the update kept with a matrix of source kKept; 0: none.
  int64_t update_rank = 0;
};

// Returns the total rank of all changes since the factor was made; 0 if they are not all of low
// rank.
int64_t ChangedRank(const SeriesMatrix& matrix);

// The plan of a step. Equal ids denote a shared buffer. Created by PlanSeriesStep, then constant,
// except for `factor`, as described for FactorizePlan.
struct SeriesStepPlan {
  SeriesStepOptions options;
  SeriesMatrix matrix;
  // Exactly one is set if a new factor may be made, otherwise neither.
  std::optional<FactorizePlan> factor;
  std::optional<SparseFactorizePlan> sparse;
  bool may_factor() const { return factor || sparse; }
  PackedMatrix rhs;  // B as received, without data
  PackedMatrix delivered;
  // An initial guess that arrives, without data: shape and type of X.
  std::optional<PackedMatrix> x0;
  DType vector_type = DType::kFloat64;
  int64_t columns = 0;
  int restart = 0;   // restart length of GMRES
  int64_t rank = 0;  // rank of the old factor's update; 0: none
  double accuracy = 0;
  bool is_accurate(double backward_error) const { return backward_error <= accuracy; }
  // Returns the largest number of columns to which the old factor's solver is applied at once.
  int64_t old_columns() const;

  BufferPlan buffers;
  BufferPlan::Id matrix_upload = 0;
  BufferPlan::Id a = 0;       // column-major, or sparse
  BufferPlan::Id update = 0;  // empty if the last step's update is used
  BufferPlan::Id update_work = 0;
  BufferPlan::Id rhs_upload = 0;
  BufferPlan::Id x0_upload = 0;
  BufferPlan::Id b = 0;  // in vector_type, column-major, as the next two
  BufferPlan::Id x = 0;
  BufferPlan::Id residual = 0;
  BufferPlan::Id packed = 0;  // X as delivered
  BufferPlan::Id krylov = 0;
  JobBytes bytes;
};

// Returns the backward error that a step with these right-hand sides must reach.
double AccuracyOf(const SeriesStepOptions& options, const PackedMatrix& rhs);

// Plans the step. `old` is the summary of the existing factor, or null if there is none or it is
// singular. `x0` is the layout of an initial guess that arrives, if any.
//
// INVALID_ARGUMENT as in PlanFactorize and PlanSolve. Also if `accuracy` is not in [0, 1), or
// matrix and right-hand sides differ in height or are empty. Also if the old factor has another
// order or field than the matrix, or a change that is not by values applies to a sparse matrix.
absl::StatusOr<SeriesStepPlan> PlanSeriesStep(const SeriesStepOptions& options,
                                              const FactorSummary* old, const SeriesMatrix& matrix,
                                              PackedMatrix rhs,
                                              std::optional<Layout> x0 = std::nullopt);

// The data from which a step starts, owned by the caller. Null if absent.
struct SeriesStart {
  const Factorization* factor = nullptr;
  // See SeriesStepResult. `solution` is the initial guess if it has the right number of columns
  // and no other guess arrives.
  const Factorization* matrix = nullptr;
  const Factorization* solution = nullptr;
  const Factorization* map = nullptr;  // used for a change of kValues
};

struct SeriesStepSummary {
  // True if there is an X: one of the factors was usable, and no pivoting method found A singular.
  bool solved = false;
  std::string solver;      // the solver that produced X
  int old_iterations = 0;  // applications of the old factor; 0 if it was not tried
  double old_cost = 0;     // their cost, as in Correction
  int new_iterations = 0;  // applications of the new factor
  // Rank of the update, if X was computed with the old factor and an update.
  int64_t update_rank = 0;
  double backward_error = 0;  // measured on X as delivered
  bool accurate = false;      // true if backward_error is within the required accuracy
  // A lower bound of A's condition number: max over columns of |op(A)| |x| / |b|, in infinity
  // norms. Near 1 / (n u), A is numerically singular, and X may be any vector of that size.
  double amplification = 0;
  // True if X may have no correct digit: amplification is that large
  // (numerics/accuracy_warnings.h) or reaches 0.01 / backward_error, or the matrix of this step's
  // new factor is nearly singular.
  bool nearly_singular = false;
  double old_seconds = 0;  // time with the old factor
  double new_seconds = 0;  // time for a new factor and the solve with it
};

// Returns the attempt with the old factor, for the model of the series.
inline SeriesAttempt SeriesAttemptOf(const SeriesStepSummary& summary) {
  return {summary.old_iterations, summary.old_cost, summary.old_seconds};
}

struct SeriesStepResult {
  // The new factor with A, if one was made. If A is singular, the factor is without A and there is
  // no X. The exception is a method without pivoting, for which an X found with the old factor
  // remains.
  std::optional<Factorization> factor;
  // Data from which the next step can start: factorizations without factors, whose summaries have
  // the size, type and norms of A, and its analysis if there is one. `matrix` has A, if A arrived
  // or was changed and is not in `factor`, together with the update if there is one. `solution` has
  // X, if X exists and is finite.
  std::optional<Factorization> matrix;
  std::optional<Factorization> solution;
  SeriesStepSummary summary;
};

// Uploads of a step, in device memory, joined to its context and possibly still arriving. Empty if
// the plan has no such upload.
struct SeriesUploads {
  Buffer matrix;
  Buffer rhs;
  Buffer x0;
};

// Solves op(A) X = B to the accuracy of the plan and writes X to `out` as Solve does, unless
// summary.solved is false.
//
// The initial guess is the guess that arrives, else the last X, else the old factor applied to B. A
// column of a guess is used only if its residual is smaller than that of zero. GMRES improves the
// solution with the old factor, with its update if one is planned, as right preconditioner. If this
// does not converge within its limits, or A appears singular, a new factor is made and used in the
// same way.
//
// Blocks. A singular matrix and a less accurate solution are results, not errors. INVALID_ARGUMENT
// for NaN, Inf and overflows in A, B and the initial guess, as in Factorize and Solve. Also for
// changed entries outside A or with contradictory values, and for values that must be real but are
// not. CANCELLED between phases and before each iteration. `growth` is as in FactorizeSparse, for
// the whole job; may be null.
absl::StatusOr<SeriesStepResult> SolveSeriesStep(ExecutionContext& context,
                                                 const SeriesStepPlan& plan,
                                                 const SeriesStart& start, SeriesUploads uploads,
                                                 std::byte* out, StopRequested stop,
                                                 KernelTimings& timings,
                                                 SparseGrowth* growth = nullptr);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SERIES_SERIES_STEP_H_
