// A step of a time series: the next system, solved from what is there of the last one.
#ifndef CROUT_KERNELS_JOBS_SERIES_STEP_H_
#define CROUT_KERNELS_JOBS_SERIES_STEP_H_

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
#include "kernels/jobs/sparse_factorize.h"
#include "kernels/value_map.h"

namespace crout {

// X of the last step: n x columns by columns, float64 or complex128.
inline constexpr std::string_view kSolutionPart = "solution";
// A LowRankUpdate, in the type of solutions: the way from the factor's matrix to that beside it.
inline constexpr std::string_view kUpdatePart = "update";
// The block of the ValueMap of the last text.
inline constexpr std::string_view kValueMapPart = "value map";

// What solves with a factor, as SolveOptions has them.
struct SolverPair {
  const TriangularSolver* solver = nullptr;
  const TriangularSolver* fallback = nullptr;
};

struct SeriesStepOptions {
  // How a new factor is made where one is made. The matrix is kept with it, whatever this says.
  FactorizeOptions factor;
  // In its place where the matrix is to stay sparse to its factors: planned by the analysis of its
  // pattern, the matrix being kept.
  std::optional<SparseFactorizePlan> sparse;
  SolverPair with_old;  // read where there is an old factor
  SolverPair with_new;
  Op op = Op::kNone;
  // Normwise backward error that is asked of every right-hand side; 0: sqrt(n) u, u the unit
  // roundoff of the right-hand sides' type. Below u counts as u.
  double accuracy = 0;
  // Applications of the old factor before a new one is made, and what they may cost (as Correction
  // has it). 0: made at once.
  int most_iterations = 0;
  double most_cost = std::numeric_limits<double>::infinity();
  // It is given up earlier where what seems to be left costs more than that, as much as a new
  // factor (a cost as Correction has it), but not before as many as least_iterations.
  double most_left = std::numeric_limits<double>::infinity();
  int least_iterations = 0;
  // With the old factor, changes of low rank are solved for by Woodbury's formula, as long as all
  // since it was made are of low rank, and of no more than MostUpdateRank together.
  bool update = false;
};

// Of the changes of a matrix of order n, where a new factor has long been cheaper than each step's
// products and solve.
int64_t MostUpdateRank(int64_t n);

// Seconds of an iteration with an old factor that `solver` solves with, for as long as none was
// measured.
double PredictIterationSeconds(const TriangularSolver& solver, const FactorSummary& factor,
                               int64_t nrhs);

// Where A of a step comes from.
enum class SeriesSource : uint8_t {
  kUpload,  // it arrives
  kKept,    // that of the last step, which was solved with the factor of one before
  kFactor,  // the one that the factor is of: a new factor would be no other, and none is made
};

// How A follows from the matrix that is there.
struct MatrixChange {
  enum class Kind : uint8_t {
    kEntries,  // some have new values: an EntryList
    kLowRank,  // A + U V^T: the n x rank U by columns, then V by rows
    kValues,   // of the lines of a text, in their order: the elements are sums of them by a map
  };

  Kind kind = Kind::kEntries;
  int64_t size = 0;        // entries; the rank; values
  ValueMapShape map = {};  // of kValues
};

// Bytes of a change of a matrix of order n, as it arrives. INVALID_ARGUMENT for a size below 1,
// above n^2 entries, of a rank above n, or of another number of values than lines.
absl::StatusOr<size_t> ChangeBytes(const MatrixChange& change, int64_t n, DType dtype);

struct SeriesMatrix {
  SeriesSource source = SeriesSource::kUpload;
  // As it arrives, or as it is kept, by columns; without data. Of a sparse one the layout says
  // nothing.
  PackedMatrix shape;
  std::optional<int64_t> nonzeros;  // of a sparse one
  // Arrives in the matrix's place; A is the matrix of `source`, which is not kUpload, with it.
  std::optional<MatrixChange> change = std::nullopt;
  // Of the update that is kept beside the matrix of source kKept; 0: there is none.
  int64_t update_rank = 0;
};

// Rank of all changes since the factor was made; 0: not all of them are of low rank.
int64_t ChangedRank(const SeriesMatrix& matrix);

// A step, decided before it runs, and its buffers. Where two ids are equal one buffer serves for
// both. Made by PlanSeriesStep, then constant but for `factor`, as FactorizePlan says.
struct SeriesStepPlan {
  SeriesStepOptions options;
  SeriesMatrix matrix;
  // Of a new factor, where there may be one: one or the other.
  std::optional<FactorizePlan> factor;
  std::optional<SparseFactorizePlan> sparse;
  bool may_factor() const { return factor || sparse; }
  PackedMatrix rhs;  // as it arrives, without data
  PackedMatrix delivered;
  std::optional<PackedMatrix> x0;  // a start that arrives, without data: shape and type of X
  DType vector_type = DType::kFloat64;
  int64_t columns = 0;
  int restart = 0;   // of GMRES
  int64_t rank = 0;  // of the update that the old factor is used with; 0: with none
  double accuracy = 0;
  // Of the old factor's solver: what it is applied to at once.
  int64_t old_columns() const;

  BufferPlan buffers;
  BufferPlan::Id matrix_upload = 0;
  BufferPlan::Id a = 0;       // by columns, or sparse
  BufferPlan::Id update = 0;  // empty where that of the last step serves
  BufferPlan::Id update_work = 0;
  BufferPlan::Id rhs_upload = 0;
  BufferPlan::Id x0_upload = 0;
  BufferPlan::Id b = 0;  // in vector_type by columns, as the next three
  BufferPlan::Id x = 0;
  BufferPlan::Id residual = 0;
  BufferPlan::Id packed = 0;  // X as it is delivered
  BufferPlan::Id krylov = 0;
  JobBytes bytes;
};

// The backward error that a step with these right-hand sides is to reach.
double AccuracyOf(const SeriesStepOptions& options, const PackedMatrix& rhs);

// `old`: of the factor that is there, if there is one that is not singular. `x0`: how a start
// arrives, if one does. INVALID_ARGUMENT as
// PlanFactorize and PlanSolve, where `accuracy` is not in [0, 1), where matrix and right-hand sides
// differ in height or are empty, where there is an old factor of another order or field than the
// matrix, or for the change of a matrix that is kept sparse.
absl::StatusOr<SeriesStepPlan> PlanSeriesStep(const SeriesStepOptions& options,
                                              const FactorSummary* old, const SeriesMatrix& matrix,
                                              PackedMatrix rhs,
                                              std::optional<Layout> x0 = std::nullopt);

// What a step starts from: all of it stays its owner's. Null where there is none.
struct SeriesStart {
  const Factorization* factor = nullptr;
  // As SeriesStepResult has them. The solution is the first X where that has as many columns, and
  // no other start arrives.
  const Factorization* matrix = nullptr;
  const Factorization* solution = nullptr;
  const Factorization* map = nullptr;  // read for a change of kValues
};

struct SeriesStepSummary {
  // There is an X: one factor or the other served, and no method that pivots found A singular.
  bool solved = false;
  std::string solver;         // whose answer X is
  int old_iterations = 0;     // applications of the old factor; 0 where it was not tried
  double old_cost = 0;        // theirs, as Correction has it
  int new_iterations = 0;     // and of the new one
  int64_t update_rank = 0;    // of what the old factor was used with, where X is its answer
  double backward_error = 0;  // of X as delivered
  bool accurate = false;      // that is what was asked, or better
  // A lower bound of A's condition number: max over columns of |op(A)| |x| / |b|, infinity-norms.
  // Near 1 / (n u) A may as well be singular, and X any vector of that size.
  double amplification = 0;
  // No figure of X need be right: that is so large (numerics/judgment.h), or 0.01 / backward_error,
  // or a factor that the step made is of a matrix that is nearly singular.
  bool nearly_singular = false;
  double old_seconds = 0;  // spent with the old factor
  double new_seconds = 0;  // on a new one, and with it
};

// What the step did with the old factor, for the model of its series.
inline SeriesTry TriedIn(const SeriesStepSummary& summary) {
  return {summary.old_iterations, summary.old_cost, summary.old_seconds};
}

struct SeriesStepResult {
  // The new factor, if one was made, with A. Singular: then it is without A, and there is no X, but
  // where the method does not pivot that which the old factor has found, if it has found one.
  std::optional<Factorization> factor;
  // What the next step can start from: factorizations without factors, whose summaries have A's
  // size, type and norms, and its analysis where there is one. A, if it arrived or was changed and
  // is not with `factor`, and with it the update if there is one; X, if there is one that is
  // finite.
  std::optional<Factorization> matrix;
  std::optional<Factorization> solution;
  SeriesStepSummary summary;
};

// What arrives for a step, in device memory, joined to its context; it need not be there yet. Empty
// where the plan says that it does not arrive.
struct SeriesUploads {
  Buffer matrix;
  Buffer rhs;
  Buffer x0;
};

// Solves op(A) X = B to the accuracy of the plan: from the start that arrives, or else the last X,
// or else what the old factor makes of B, by GMRES with that factor, updated where the plan says
// so, on the right; a start's columns count whose residual is smaller than that of zeros. Where
// this does not get there in the iterations that it may take, or A may as well be singular, with a
// new factor, and GMRES with that. X goes to `out` as in Solve, unless summary.solved is false.
// Blocks. A singular matrix, and an answer that is not as accurate as asked, are results.
// INVALID_ARGUMENT for NaN, Inf and overflows in A, B and the start, as Factorize and Solve, for
// changed entries that A has not, or that have two values, and for values that have to be real and
// are not; CANCELLED between the phases, and before each iteration. `growth`: as FactorizeSparse
// has it, of the job as a whole; may be null.
absl::StatusOr<SeriesStepResult> SolveSeriesStep(ExecutionContext& context,
                                                 const SeriesStepPlan& plan,
                                                 const SeriesStart& start, SeriesUploads uploads,
                                                 std::byte* out, StopRequested stop,
                                                 KernelTimings& timings,
                                                 SparseGrowth* growth = nullptr);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SERIES_STEP_H_
