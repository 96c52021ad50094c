// SPDX-License-Identifier: Apache-2.0

#include "server/engine/series/series_steps.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/algorithm_registry.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/solve.h"
#include "kernels/util/digest.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "kernels/util/strings.h"
#include "server/engine/error.h"
#include "server/engine/plan/options.h"
#include "server/engine/plan/singular_matrix.h"
#include "server/engine/plan/sparse_analysis.h"

namespace crout {
namespace {

// Iteration limit for the strategies REUSE and UPDATE. GMRES may run as long as it makes progress.
constexpr int kForcedMaxIterations = 300;
// Iteration limit if the factor belongs to the matrix of the step.
constexpr int kSameMatrixMaxIterations = 20;
// Assumed number of iterations of a step with the existing factor, for estimates of queue and
// progress.
constexpr int kUsualIterations = 5;

// Payload of a step that uploads no matrix.
PayloadSpec NoMatrix(DType dtype) {
  PayloadSpec spec;
  spec.shape.dtype = dtype;
  return spec;
}

PackedMatrix CachedShape(const FactorSummary& cached) {
  return {nullptr, cached.matrix_dtype, Layout::kColumnMajor, cached.n, cached.n};
}

}  // namespace

SeriesSteps::SeriesSteps(Engine& engine, DeviceSlot& slot, const PayloadSpec& matrix,
                         std::optional<MatrixChange> change, const PayloadSpec& rhs,
                         const SeriesRequest& series, SeriesPins& pins, Budget budget)
    : StepPair(engine, slot, matrix, change ? "change" : "matrix", rhs),
      series_(series),
      pins_(pins),
      budget_(std::move(budget)),
      change_(change),
      has_upload_(matrix.needs_parsing() || matrix.shape.rows > 0),
      request_(series.factor),
      sparse_(engine, slot) {}

absl::StatusOr<std::unique_ptr<SeriesSteps>> SeriesSteps::Create(
    Engine& engine, const SeriesStepRequest& step, const SeriesRequest& series, std::string tenant,
    SeriesPins& pins, Budget budget, DeviceSlot& slot) {
  const auto& cached = pins.matrix ? pins.matrix : pins.factor;
  const DType cached_dtype = cached ? cached->summary().matrix_dtype : DType::kFloat64;
  PayloadSpec matrix = NoMatrix(cached_dtype);
  std::optional<MatrixChange> change;
  if (step.change) {
    if (step.matrix) return BadField("change", "a matrix is also set: set only one of the two");
    CROUT_ASSIGN_OR_RETURN(change, ChangeOf(*step.change, pins.entries));
    CROUT_ASSIGN_OR_RETURN(matrix, ChangePayload(*change, cached->summary()));
  } else if (step.matrix) {
    CROUT_ASSIGN_OR_RETURN(matrix, CheckPayload(*step.matrix, "matrix", engine.limits, *slot.device,
                                                PayloadRole::kMatrixAllowingSparse));
    matrix.build_value_map = matrix.needs_parsing();
    if (!matrix.needs_parsing() && matrix.shape.rows == 0) {
      return BadField("matrix", "of order 0: send a matrix with at least one row");
    }
  }
  CROUT_ASSIGN_OR_RETURN(
      const PayloadSpec rhs,
      CheckPayload(step.rhs, "rhs", engine.limits, *slot.device, PayloadRole::kRightHandSide));
  if (rhs.needs_parsing()) return BadField("rhs", "not dense: send a dense right-hand side");
  if (rhs.shape.rows == 0 || rhs.shape.cols == 0) {
    return BadField("rhs", absl::StrCat(rhs.shape.rows, " x ", rhs.shape.cols,
                                        " is empty: send at least one right-hand side"));
  }
  auto steps = std::unique_ptr<SeriesSteps>(
      new SeriesSteps(engine, slot, matrix, change, rhs, series, pins, std::move(budget)));
  const bool cached_sparse = !step.matrix && cached && cached->summary().matrix_nonzeros > 0;
  CROUT_RETURN_IF_ERROR(
      steps->sparse_.ExtractMethodName(matrix.needs_parsing() || cached_sparse, &steps->request_));
  steps->sparse_.Allow(std::move(tenant));
  CROUT_ASSIGN_OR_RETURN(steps->options_.factor,
                         OptionsFor(steps->request_, change ? cached_dtype : matrix.shape.dtype));
  CROUT_RETURN_IF_ERROR(steps->sparse_.CheckType(steps->ChoiceInput()));
  if (step.x0) CROUT_RETURN_IF_ERROR(steps->AddInitialGuess(*step.x0));
  steps->options_.accuracy = series.accuracy;
  steps->options_.op = series.op;
  // Refuse a method that the device lacks before the payload arrives; the order is not yet known.
  CROUT_RETURN_IF_ERROR(
      crout::Resolve(steps->request_, *slot.device, /*n=*/0, &steps->options_.factor));
  return steps;
}

absl::Status SeriesSteps::AddInitialGuess(const MatrixSpec& x0) {
  constexpr char kField[] = "x0";
  CROUT_ASSIGN_OR_RETURN(
      const PayloadSpec spec,
      CheckPayload(x0, kField, engine_.limits, *slot_.device, PayloadRole::kRightHandSide));
  if (spec.needs_parsing())
    return BadField(kField, "the initial guess is not dense: send it as dense");
  CROUT_ASSIGN_OR_RETURN(const SolutionShape solution,
                         ShapeSolution(options_.factor.factor_dtype, rhs_.upload().shape()));
  const PackedMatrix& x = solution.delivered;
  if (spec.shape.rows != x.rows || spec.shape.cols != x.cols || spec.shape.dtype != x.dtype) {
    return BadField(kField, absl::StrCat("the initial guess is ", spec.shape.rows, " x ",
                                         spec.shape.cols, ", ", ToAbsl(NameOf(spec.shape.dtype)),
                                         ": send it in the shape and type of X, ", x.rows, " x ",
                                         x.cols, ", ", ToAbsl(NameOf(x.dtype))));
  }
  x0_.emplace(engine_, spec, kField, slot_,
              [this] { return absl::StatusOr<MemoryNeed>({.device = InitialGuessBytes()}); });
  return absl::OkStatus();
}

std::vector<PayloadStep*> SeriesSteps::steps() {
  std::vector<PayloadStep*> steps = StepPair::steps();
  if (x0_) steps.push_back(&*x0_);
  return steps;
}

SeriesMatrix SeriesSteps::SelectMatrix() {
  SeriesMatrix matrix;
  if (has_upload_ && !change_) {
    matrix.shape = matrix_.upload().shape();
    const std::optional<int64_t> nnz = matrix_.upload().nnz();
    const bool sparse =
        sparse_.plan() != nullptr ||
        (nnz && ArrivesSparse(*slot_.device, matrix.shape.rows, *nnz, matrix.shape.dtype));
    if (sparse) {
      matrix_.upload().KeepSparse();
      matrix.nonzeros = nnz;
    }
    map_ = matrix_.upload().map_shape();
    return matrix;
  }
  const bool cached = pins_.matrix.has_value();
  const FactorSummary& summary = (cached ? *pins_.matrix : *pins_.factor).summary();
  matrix.source = cached ? SeriesSource::kKept : SeriesSource::kFactor;
  matrix.shape = CachedShape(summary);
  if (summary.matrix_nonzeros > 0) matrix.nonzeros = summary.matrix_nonzeros;
  matrix.change = change_;
  if (cached) matrix.update_rank = pins_.update_rank;
  return matrix;
}

absl::Status SeriesSteps::CheckOrders(const PackedMatrix& matrix) {
  CROUT_RETURN_IF_ERROR(CheckSquare(matrix, "matrix"));
  if (const auto& there = pins_.factor ? pins_.factor : pins_.singular) {
    CROUT_RETURN_IF_ERROR(
        CheckRows(matrix, there->summary().n, "matrix", absl::StatusCode::kFailedPrecondition));
    if (IsComplex(matrix.dtype) != IsComplex(there->summary().factor_dtype)) {
      return WithReason(FieldError(absl::StatusCode::kFailedPrecondition, "matrix",
                                   "real after a complex factor, or complex after a real "
                                   "one: begin another series"),
                        kReasonShapeMismatch);
    }
  }
  return CheckRows(rhs_.upload().shape(), matrix.rows, "rhs", absl::StatusCode::kInvalidArgument);
}

absl::Status SeriesSteps::AnalyzeMatrix(StopRequested stop) {
  if (!has_upload_ || change_) return absl::OkStatus();
  MatrixUpload& upload = matrix_.upload();
  const int64_t n = upload.shape().rows;
  CROUT_RETURN_IF_ERROR(crout::Resolve(request_, *slot_.device, n, &options_.factor));
  return sparse_.Analyze(upload, ChoiceInput(), stop);
}

absl::StatusOr<std::optional<SeriesAnswer>> SeriesSteps::FindSingular() {
  const bool is_singular = sparse_.unmatched_row() >= 0 || sparse_.has_empty_line();
  // A dense job detects the singularity and keeps the matrix. Answer here only if the request names
  // a sparse method or the order exceeds the limit of dense matrices.
  if (!is_singular || (!sparse_.named() && columns() <= engine_.limits.max_n)) {
    return std::optional<SeriesAnswer>();
  }
  CROUT_RETURN_IF_ERROR(CheckOrders(matrix_.upload().shape()));
  CROUT_ASSIGN_OR_RETURN(
      std::optional<NewFactor> factor,
      crout::FindSingular(engine_, slot_, matrix_.upload(), options_.factor, sparse_));
  SeriesAnswer answer;
  answer.factor = std::move(factor);
  answer.has_new_matrix = true;
  answer.accuracy = AccuracyOf(options_, rhs_.upload().shape());
  return std::optional(std::move(answer));
}

absl::Status SeriesSteps::PlanCached() {
  const FactorSummary& cached = (pins_.matrix ? *pins_.matrix : *pins_.factor).summary();
  if (!cached.sparse || cached.matrix_nonzeros == 0) return absl::OkStatus();
  return sparse_.PlanForPattern(*cached.sparse, cached.matrix_dtype, ChoiceInput());
}

absl::StatusOr<SolverPair> SeriesSteps::SolversFor(const FactorSummary& factor,
                                                   int64_t nrhs) const {
  SolverPair pair;
  CROUT_ASSIGN_OR_RETURN(pair.solver, FindSolver(*slot_.device, "auto", factor, nrhs));
  if (!pair.solver->needs_preparation()) return pair;
  CROUT_ASSIGN_OR_RETURN(pair.fallback, FindSolver(*slot_.device, "auto", factor.unit_diagonal,
                                                   factor.factor_dtype, factor.n, nrhs));
  return pair;
}

SeriesBudget SeriesSteps::BudgetFor(const SeriesMatrix& matrix, double factor_seconds,
                                    double iteration_seconds) const {
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  if (!has_upload_ && !pins_.matrix) return {kSameMatrixMaxIterations, kUnlimited};
  switch (series_.strategy) {
    case SeriesStrategy::kReuse:
      return {kForcedMaxIterations, kUnlimited};
    case SeriesStrategy::kUpdate:
      if (ChangedRank(matrix) > MaxUpdateRank(matrix.shape.rows)) return {};
      return {kForcedMaxIterations, kUnlimited};
    case SeriesStrategy::kAuto:
      return budget_(factor_seconds, iteration_seconds);
    case SeriesStrategy::kRefactor:
      break;
  }
  return {};
}

absl::Status SeriesSteps::Resolve(const SeriesMatrix& matrix, int64_t nrhs) {
  const int64_t n = matrix.shape.rows;
  FactorizeOptions& factor = options_.factor;
  CROUT_RETURN_IF_ERROR(crout::Resolve(request_, *slot_.device, n, &factor));
  FactorSummary made;
  made.n = n;
  made.factor_dtype = factor.factor_dtype;
  made.unit_diagonal = factor.algorithm->traits().unit_diagonal;
  factor.prepare = FindSolverToPrepare(*slot_.device, made.unit_diagonal, made.factor_dtype);
  if (factor.prepare != nullptr) made.preparation.emplace();
  options_.sparse.reset();
  if (sparse_.plan() != nullptr) {
    options_.sparse = *sparse_.plan();
    made = sparse_.Expected();
  }
  CROUT_ASSIGN_OR_RETURN(options_.with_new, SolversFor(made, nrhs));
  factor.parameters.start.reset();
  if (!options_.sparse && pins_.factor && CanStartFrom(pins_.factor->summary(), factor)) {
    factor.parameters.start.emplace();  // Run() sets the view
  }
  const double making = options_.sparse ? options_.sparse->seconds
                                        : factor.algorithm->PredictSeconds(factor.factor_dtype, n);
  seconds_ = making;
  options_.max_iterations = 0;
  if (!pins_.factor) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(options_.with_old, SolversFor(pins_.factor->summary(), nrhs));
  const double iteration =
      PredictIterationSeconds(*options_.with_old.solver, pins_.factor->summary(), nrhs);
  const SeriesBudget budget = BudgetFor(matrix, making, iteration);
  options_.max_iterations = budget.iterations;
  options_.max_remaining = budget.max_remaining;
  options_.max_cost = budget.max_cost;
  options_.min_iterations = budget.least;
  options_.update = series_.strategy != SeriesStrategy::kReuse;
  if (options_.max_iterations > 0) seconds_ = kUsualIterations * iteration;
  return absl::OkStatus();
}

size_t SeriesSteps::PromotionBytes() const {
  size_t bytes = 0;
  for (const auto* pin : {&pins_.factor, &pins_.matrix, &pins_.solution, &pins_.map}) {
    if (*pin) bytes += (*pin)->promotion_bytes();
  }
  return bytes;
}

absl::StatusOr<MemoryNeed> SeriesSteps::PlanRhs() {
  const PackedMatrix& rhs = rhs_.upload().shape();
  CROUT_ASSIGN_OR_RETURN(const SolutionShape solution,
                         ShapeSolution(options_.factor.factor_dtype, rhs));
  return MemoryNeed{.device = BlockBytes(rhs.bytes()),
                    .host = BlockBytes(solution.delivered.bytes())};
}

absl::StatusOr<MemoryNeed> SeriesSteps::PlanMatrix() {
  const PackedMatrix& rhs = rhs_.upload().shape();
  if (!has_upload_ || change_) CROUT_RETURN_IF_ERROR(PlanCached());
  const SeriesMatrix matrix = SelectMatrix();
  CROUT_RETURN_IF_ERROR(CheckOrders(matrix.shape));
  if (sparse_.plan() == nullptr) {
    CROUT_RETURN_IF_ERROR(CheckDimension(matrix.shape.rows, "matrix", engine_.limits));
  }
  CROUT_RETURN_IF_ERROR(Resolve(matrix, rhs.cols));
  const FactorSummary* const factor = pins_.factor ? &pins_.factor->summary() : nullptr;
  CROUT_ASSIGN_OR_RETURN(
      plan_, PlanSeriesStep(options_, factor, matrix, rhs,
                            x0_ ? std::optional(x0_->upload().shape().layout) : std::nullopt));
  const JobBytes& bytes = plan_->bytes;
  const size_t entries = 4 * FactorCache::kEntryBytes;
  const size_t map = map_ ? BlockBytes(map_->bytes()) : 0;
  return MemoryNeed{.device = bytes.peak - BlockBytes(rhs.bytes()) - InitialGuessBytes() + map +
                              entries + PromotionBytes(),
                    .host = bytes.report};
}

absl::StatusOr<const Factorization*> SeriesSteps::Promote(std::optional<FactorCache::Pin>& pin,
                                                          ExecutionContext& context,
                                                          Reservation& memory) {
  if (!pin) return nullptr;
  bool promoted = false;
  const size_t bytes = std::min(pin->promotion_bytes(), memory.bytes());
  return pin->OnDevice(context, memory.Split(bytes), &promoted);
}

NewFactor SeriesSteps::ChargePart(Factorization part, Reservation& memory) {
  NewFactor share;
  share.reservation = memory.Split(FactorCache::Charge(part.parts.bytes()));
  share.factorization = std::move(part);
  share.slot = &slot_;
  return share;
}

std::optional<int64_t> SeriesSteps::TextEntries() {
  if (!change_) return has_upload_ ? matrix_.upload().nnz() : std::nullopt;
  if (change_->kind == MatrixChange::Kind::kValues) return pins_.entries.nnz;
  return std::nullopt;
}

SeriesEntries SeriesSteps::UploadedEntries() {
  const std::optional<int64_t> nnz = matrix_.upload().nnz();
  if (!nnz) return {.form = SeriesEntries::Form::kDense};
  if (!map_) return {.form = SeriesEntries::Form::kTooMany};
  return {.form = SeriesEntries::Form::kSparse,
          .map = *map_,
          .nnz = *nnz,
          .digest = DigestText(matrix_.upload().entry_digest())};
}

absl::StatusOr<SeriesAnswer> SeriesSteps::Run(ExecutionContext& context, const JobControl& control,
                                              CallTimings& timings) {
  Stopwatch watch;
  Reservation memory = matrix_.TakeDevice();
  memory.Absorb(rhs_.TakeDevice());
  if (x0_) memory.Absorb(x0_->TakeDevice());
  SeriesStart start;
  CROUT_ASSIGN_OR_RETURN(start.factor, Promote(pins_.factor, context, memory));
  CROUT_ASSIGN_OR_RETURN(start.matrix, Promote(pins_.matrix, context, memory));
  CROUT_ASSIGN_OR_RETURN(start.solution, Promote(pins_.solution, context, memory));
  CROUT_ASSIGN_OR_RETURN(start.map, Promote(pins_.map, context, memory));
  timings.host_to_device += watch.Lap();
  if (plan_->factor && plan_->factor->options.parameters.start) {
    plan_->factor->options.parameters.start = start.factor->view();
  }
  SeriesAnswer answer;
  answer.accuracy = plan_->accuracy;
  answer.shape = plan_->delivered;
  CROUT_ASSIGN_OR_RETURN(Buffer out, engine_.host_memory.Allocate(answer.shape.bytes()));
  Factorization map;
  SeriesUploads uploads;
  SyncOnExit sync(context);  // the uploads may still be in progress
  CROUT_ASSIGN_OR_RETURN(Buffer map_block, matrix_.upload().TakeMap(context, timings));
  map.summary.n = columns();
  map.parts.Add(kValueMapPart, PartKind::kOperand, std::move(map_block));
  CROUT_ASSIGN_OR_RETURN(uploads.matrix, matrix_.upload().Take(context, timings));
  CROUT_ASSIGN_OR_RETURN(uploads.rhs, rhs_.upload().Take(context, timings));
  if (x0_) {
    CROUT_ASSIGN_OR_RETURN(uploads.x0, x0_->upload().Take(context, timings));
  }
  KernelTimings kernel;
  JobMemory job{.device = std::move(memory), .host = matrix_.TakeHost()};
  const size_t factoring = plan_->sparse ? plan_->sparse->bytes.peak : 0;
  ReservedGrowth growth(engine_, slot_, matrix_.upload().tenant(), sparse_.analysis(), job,
                        job.device.bytes() - factoring);
  CROUT_ASSIGN_OR_RETURN(SeriesStepResult result,
                         SolveSeriesStep(context, *plan_, start, std::move(uploads), out.data(),
                                         control.stop_factoring, kernel, &growth));
  sync.Dismiss();
  memory = std::move(job.device);
  timings.analyze += sparse_.seconds();
  timings.queue -= sparse_.seconds();
  timings.Add(kernel);
  answer.summary = result.summary;
  if (result.factor) {
    engine_.events.OnFactor(slot_, result.factor->summary, kernel.factor);
    answer.factor = ChargePart(*std::move(result.factor), memory);
    answer.factor->record =
        ExtractRecord(answer.factor->factorization.summary, std::move(job.host),
                      engine_.cache.OwnerOnHost(matrix_.upload().tenant(), ShareUse::kCache));
    answer.factor->nnz = TextEntries();
  }
  if (result.matrix) answer.matrix = ChargePart(*std::move(result.matrix), memory);
  if (result.solution) answer.solution = ChargePart(*std::move(result.solution), memory);
  answer.has_new_matrix = has_upload_ && !change_;
  if (answer.has_new_matrix) answer.entries = UploadedEntries();
  if (map_) answer.map = ChargePart(std::move(map), memory);
  answer.x = std::make_shared<const ReplyData>(ReplyData{rhs_.TakeHost(), std::move(out)});
  return answer;
}

}  // namespace crout
