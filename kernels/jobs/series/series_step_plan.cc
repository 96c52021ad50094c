// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/series/series_step.h"
#include "kernels/jobs/solve.h"
#include "kernels/matrix_ops.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/numerics/gmres.h"
#include "kernels/numerics/updated_inverse.h"
#include "kernels/sparse_view.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Phases: use of the old factor, factorization, use of the new factor.
constexpr int kOld = 0;
constexpr int kFactoring = 1;
constexpr int kNew = 2;
constexpr Lifetime kAlways = {kOld, kNew};

// At larger ranks, the products and the inversion of the core, on one host core, become
// significant.
constexpr int64_t kMaxUpdateRank = 64;

absl::Status CheckOld(const FactorSummary& old, const PackedMatrix& matrix) {
  if (old.n != matrix.rows) {
    return absl::InvalidArgumentError(absl::StrCat("the matrix has order ", matrix.rows,
                                                   "; the factor of the series has order ", old.n));
  }
  return CheckSameField(matrix.dtype, old.factor_dtype);
}

absl::Status AddChangedMatrix(SeriesStepPlan& plan, size_t bytes) {
  const SeriesMatrix& matrix = plan.matrix;
  BufferPlan& buffers = plan.buffers;
  const MatrixChange::Kind kind = matrix.change->kind;
  if (matrix.nonzeros && kind != MatrixChange::Kind::kValues) {
    return absl::InvalidArgumentError(
        "a change by entries or ranks needs a dense matrix. Send a sparse matrix in full, or only "
        "its values");
  }
  CROUT_ASSIGN_OR_RETURN(const size_t arriving,
                         ChangeBytes(*matrix.change, matrix.shape.rows, matrix.shape.dtype));
  plan.matrix_upload = buffers.Add("change", BufferKind::kUpload, arriving);
  plan.a = buffers.Add("changed matrix", bytes, {kOld, Lifetime::kInResult});
  return absl::OkStatus();
}

absl::Status AddUpdate(SeriesStepPlan& plan) {
  size_t update = 0;
  size_t work = 0;
  if (plan.rank > 0) {
    CROUT_ASSIGN_OR_RETURN(work,
                           UpdatedInverse::WorkBytes(plan.rank, plan.columns, plan.vector_type));
  }
  if (plan.rank > 0 && plan.matrix.change) {
    CROUT_ASSIGN_OR_RETURN(update,
                           LowRankUpdate::Bytes(plan.rhs.rows, plan.rank, plan.vector_type));
  }
  plan.update = plan.buffers.Add("update", update, {kOld, Lifetime::kInResult});
  plan.update_work = plan.buffers.Add("low-rank update", work);
  return absl::OkStatus();
}

absl::Status AddMatrix(SeriesStepPlan& plan) {
  const SeriesMatrix& matrix = plan.matrix;
  const PackedMatrix& shape = matrix.shape;
  BufferPlan& buffers = plan.buffers;
  CROUT_ASSIGN_OR_RETURN(const size_t bytes,
                         matrix.nonzeros ? SparseBytes(shape.rows, *matrix.nonzeros, shape.dtype)
                                         : MatrixBytes(shape.rows, shape.cols, shape.dtype));
  constexpr Lifetime kKept = {kOld, Lifetime::kInResult};
  if (matrix.change) {
    CROUT_RETURN_IF_ERROR(AddChangedMatrix(plan, bytes));
  } else if (matrix.source != SeriesSource::kUpload) {
    // The kept matrix is used in place until a new factor takes a copy.
    plan.matrix_upload = buffers.Add("matrix upload", BufferKind::kUpload, 0);
    plan.a = buffers.Add("copy of the matrix", plan.may_factor() ? bytes : 0,
                         {kFactoring, Lifetime::kInResult});
  } else if (!matrix.nonzeros && shape.layout == Layout::kRowMajor) {
    plan.matrix_upload = buffers.Add("matrix upload", BufferKind::kUpload, bytes);
    plan.a = buffers.Add("matrix", bytes, kKept);
  } else {
    plan.matrix_upload = buffers.Add("matrix upload", BufferKind::kUpload, bytes, kKept);
    plan.a = plan.matrix_upload;
  }
  if (plan.factor) buffers.AddJob(plan.factor->buffers, kFactoring, plan.factor->upload);
  if (plan.sparse) buffers.AddJob(plan.sparse->buffers, kFactoring, plan.sparse->matrix);
  return absl::OkStatus();
}

// `bytes`: size of X as it is solved for.
absl::Status AddSolution(SeriesStepPlan& plan, size_t bytes) {
  constexpr Lifetime kKept = {kOld, Lifetime::kInResult};
  BufferPlan& buffers = plan.buffers;
  size_t upload = 0;
  if (plan.x0) {
    CROUT_ASSIGN_OR_RETURN(upload, MatrixBytes(plan.x0->rows, plan.x0->cols, plan.x0->dtype));
  }
  const bool as_it_is =
      plan.x0 && plan.x0->dtype == plan.vector_type && plan.x0->layout == Layout::kColumnMajor;
  plan.x0_upload = buffers.Add("initial guess upload", BufferKind::kUpload, upload,
                               as_it_is ? kKept : Lifetime());
  plan.x = as_it_is ? plan.x0_upload : buffers.Add("solution", bytes, kKept);
  return absl::OkStatus();
}

absl::Status AddVectors(SeriesStepPlan& plan) {
  const PackedMatrix& rhs = plan.rhs;
  BufferPlan& buffers = plan.buffers;
  CROUT_ASSIGN_OR_RETURN(const size_t upload, MatrixBytes(rhs.rows, rhs.cols, rhs.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t delivered,
                         MatrixBytes(rhs.rows, rhs.cols, plan.delivered.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t vectors,
                         MatrixBytes(rhs.rows, plan.columns, plan.vector_type));
  const bool as_it_is = rhs.dtype == plan.vector_type && rhs.layout == Layout::kColumnMajor;
  plan.rhs_upload = buffers.Add("right-hand side upload", BufferKind::kUpload, upload, kAlways);
  plan.b = as_it_is ? plan.rhs_upload : buffers.Add("right-hand sides", vectors, kAlways);
  CROUT_RETURN_IF_ERROR(AddSolution(plan, vectors));
  plan.residual = buffers.Add("residual", vectors, kAlways);
  plan.packed =
      delivered == upload ? plan.rhs_upload : buffers.Add("packed solution", delivered, kAlways);
  CROUT_ASSIGN_OR_RETURN(const size_t krylov, GmresMemory::Bytes(rhs.rows, plan.columns,
                                                                 plan.vector_type, plan.restart));
  plan.krylov = buffers.Add("Krylov spaces", krylov, kAlways);
  buffers.Add("reply", BufferKind::kReply, delivered);
  return absl::OkStatus();
}

// `analysis` is set for a sparse factor and null for a dense one.
absl::Status AddSolver(SeriesStepPlan& plan, const SolverPair& pair, DType dtype,
                       const Analysis* analysis, int64_t columns, int phase) {
  if (pair.solver == nullptr) return absl::InvalidArgumentError("the options name no solver");
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, FactorSolver::Bytes(*pair.solver, dtype, plan.rhs.rows,
                                                                 columns, pair.fallback, analysis));
  plan.buffers.Add("solver", BufferKind::kPart, bytes, {phase, phase});
  return absl::OkStatus();
}

absl::Status CheckShapes(const SeriesStepOptions& options, const PackedMatrix& matrix,
                         const PackedMatrix& rhs) {
  if (!(options.accuracy >= 0 && options.accuracy < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the accuracy is ", options.accuracy,
                     "; it must be a backward error in [0, 1), where 0 is the default"));
  }
  if (rhs.rows == 0 || rhs.cols == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("right-hand side is ", rhs.rows, " x ", rhs.cols,
                     "; a step needs at least one row and one column"));
  }
  if (rhs.rows == matrix.rows) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("right-hand side has ", rhs.rows, " rows; the matrix has order ", matrix.rows,
                   ". Send a right-hand side with ", matrix.rows, " rows"));
}

// Returns the rank of the update that the plan needs, or 0.
int64_t RankOf(const SeriesStepOptions& options, const FactorSummary* old,
               const SeriesMatrix& matrix) {
  if (!options.update || options.max_iterations == 0 || old == nullptr) return 0;
  const int64_t rank = ChangedRank(matrix);
  return rank <= MaxUpdateRank(old->n) ? rank : 0;
}

}  // namespace

double AccuracyOf(const SeriesStepOptions& options, const PackedMatrix& rhs) {
  const double u = UnitRoundoff(rhs.dtype);
  if (options.accuracy > 0) return std::max(options.accuracy, u);
  return std::sqrt(static_cast<double>(rhs.rows)) * u;
}

int64_t MaxUpdateRank(int64_t n) { return std::min<int64_t>(kMaxUpdateRank, n / 4); }

double PredictIterationSeconds(const TriangularSolver& solver, const FactorSummary& factor,
                               int64_t nrhs) {
  const DType dtype = factor.factor_dtype;
  const int64_t n = factor.n;
  // A solve reads the factor, and a product reads the matrix, which is not larger. Vector
  // operations, which grow more slowly, need as many calls as both together.
  if (factor.sparse) {
    return 4 * solver.PredictSparseSeconds(*factor.sparse->analysis, dtype, nrhs);
  }
  return 2 * (solver.PredictSeconds(dtype, n, nrhs) + solver.PredictSeconds(dtype, 1, nrhs));
}

int64_t ChangedRank(const SeriesMatrix& matrix) {
  if (matrix.source == SeriesSource::kUpload) return 0;
  if (!matrix.change) return matrix.update_rank;
  const bool is_covered = matrix.source == SeriesSource::kFactor || matrix.update_rank > 0;
  if (!is_covered || matrix.change->kind != MatrixChange::Kind::kLowRank) return 0;
  return matrix.update_rank + matrix.change->size;
}

int64_t SeriesStepPlan::old_columns() const {
  return rank > 0 && matrix.change ? std::max(columns, matrix.change->size) : columns;
}

absl::StatusOr<size_t> ChangeBytes(const MatrixChange& change, int64_t n, DType dtype) {
  if (change.kind == MatrixChange::Kind::kValues) {
    if (change.size == change.map.lines && change.size >= 1) return change.size * SizeOf(dtype);
    return absl::InvalidArgumentError(
        absl::StrCat("the change has ", change.size, " values; the text of the matrix has ",
                     change.map.lines, " entries. Send one value for each"));
  }
  const bool low_rank = change.kind == MatrixChange::Kind::kLowRank;
  // Fails if a matrix of n^2 entries has no valid size, so that the sums below cannot overflow.
  CROUT_ASSIGN_OR_RETURN(const size_t whole, MatrixBytes(n, n, dtype));
  const auto most = low_rank ? n : static_cast<int64_t>(whole / SizeOf(dtype));
  if (change.size < 1 || change.size > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("the change has ", change.size, low_rank ? " ranks" : " entries",
                     "; a matrix of order ", n, " takes 1 to ", most));
  }
  if (!low_rank) {
    return ByteSum()
        .Add(change.size * SizeOf(dtype))
        .Add(change.size * EntryList::kIndexBytes)
        .total();
  }
  CROUT_ASSIGN_OR_RETURN(const size_t half, MatrixBytes(n, change.size, dtype));
  return ByteSum().Add(half).Add(half).total();
}

absl::StatusOr<SeriesStepPlan> PlanSeriesStep(const SeriesStepOptions& options,
                                              const FactorSummary* old, const SeriesMatrix& matrix,
                                              PackedMatrix rhs, std::optional<Layout> x0) {
  const DType factor_dtype =
      options.sparse ? options.sparse->options.factor_dtype : options.factor.factor_dtype;
  CROUT_RETURN_IF_ERROR(CheckShapes(options, matrix.shape, rhs));
  SeriesStepPlan plan;
  plan.options = options;
  plan.options.factor.keep_matrix = true;
  plan.matrix = matrix;
  PackedMatrix by_columns = matrix.shape;
  by_columns.layout = Layout::kColumnMajor;
  if (matrix.source != SeriesSource::kFactor || matrix.change) {
    plan.sparse = options.sparse;
    if (!plan.sparse) {
      CROUT_ASSIGN_OR_RETURN(plan.factor,
                             PlanFactorize(plan.options.factor, by_columns, matrix.nonzeros));
    }
  }
  if (old != nullptr) CROUT_RETURN_IF_ERROR(CheckOld(*old, matrix.shape));
  if (old == nullptr && !plan.may_factor()) {
    return absl::InvalidArgumentError("the series has no factor yet. Send the matrix");
  }
  if (!IsComplex(factor_dtype) && options.op == Op::kConjugateTranspose) {
    plan.options.op = Op::kTranspose;
  }
  plan.rhs = rhs;
  CROUT_ASSIGN_OR_RETURN(const SolutionShape solution, ShapeSolution(factor_dtype, rhs));
  plan.delivered = solution.delivered;
  if (x0) plan.x0.emplace(plan.delivered).layout = *x0;
  plan.columns = solution.columns;
  plan.vector_type = WideOf(factor_dtype);
  plan.restart = RestartFor(rhs.rows, plan.columns);
  plan.accuracy = AccuracyOf(options, rhs);
  CROUT_RETURN_IF_ERROR(AddMatrix(plan));
  CROUT_RETURN_IF_ERROR(AddVectors(plan));
  plan.rank = RankOf(options, old, matrix);
  CROUT_RETURN_IF_ERROR(AddUpdate(plan));
  if (old != nullptr) {
    CROUT_RETURN_IF_ERROR(AddSolver(plan, options.with_old, old->factor_dtype,
                                    old->sparse ? old->sparse->analysis.get() : nullptr,
                                    plan.old_columns(), kOld));
  }
  if (plan.may_factor()) {
    CROUT_RETURN_IF_ERROR(AddSolver(plan, options.with_new, factor_dtype,
                                    plan.sparse ? plan.sparse->analysis.get() : nullptr,
                                    plan.columns, kNew));
  }
  CROUT_ASSIGN_OR_RETURN(plan.bytes, plan.buffers.Sum());
  return plan;
}

}  // namespace crout
