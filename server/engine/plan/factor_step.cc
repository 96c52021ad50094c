// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/factor_step.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/algorithm_registry.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/factorize_mixed.h"
#include "kernels/sparse_view.h"
#include "kernels/util/size_class.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "kernels/util/strings.h"
#include "server/engine/error.h"
#include "server/engine/plan/options.h"
#include "server/engine/plan/singular_matrix.h"

namespace crout {
namespace {

// Error for a request that names the batch method but cannot be batched.
absl::Status NotForBatches() {
  return BadField("options.algorithm",
                  "irr_lu factors dense matrices of order 1 or more. It supports no other type or "
                  "precision, equilibration, condition estimate, determinant, parameters, or solve "
                  "options except verification. Leave these unset, or choose another algorithm");
}

}  // namespace

// Dense, in the requested type. An iterative method may start from the factor to be replaced.
struct FactorStep::Dense final : Kind {
  Dense(FactorStep& step, FactorizePlan from)
      : Kind(step, {from.bytes, from.seconds, from.options.algorithm->traits().name}),
        plan(std::move(from)) {
    if (plan.options.parameters.start) promotion_bytes = step.last_->promotion_bytes();
  }

  absl::StatusOr<Factorization> Run(ExecutionContext& context, StopRequested stop,
                                    CallTimings& timings, KernelTimings& kernel) override {
    if (plan.options.parameters.start) {
      Stopwatch watch;
      bool promoted = false;
      CROUT_ASSIGN_OR_RETURN(
          const Factorization* start,
          step.last_->OnDevice(context, step.memory_.device.Split(promotion_bytes), &promoted));
      plan.options.parameters.start = start->view();
      timings.host_to_device += watch.Lap();
    }
    // Take the matrix last. On an earlier return, the upload still owns it and waits for copies in
    // flight.
    CROUT_ASSIGN_OR_RETURN(Buffer matrix, step.upload_.Take(context, timings));
    return Factorize(context, plan, std::move(matrix), stop, kernel);
  }

  FactorizePlan plan;
};

// Dense, in a lower precision than the requested type.
struct FactorStep::Mixed final : Kind {
  Mixed(FactorStep& step, MixedPlan from)
      : Kind(step,
             {from.bytes, from.seconds, from.low.options.algorithm->traits().name, from.precision}),
        plan(std::move(from)) {
    estimate.bytes.kept = plan.low.bytes.kept;
    mixed = &plan;
  }

  absl::StatusOr<Factorization> Run(ExecutionContext& context, StopRequested stop,
                                    CallTimings& timings, KernelTimings& kernel) override {
    CROUT_ASSIGN_OR_RETURN(Buffer matrix, step.upload_.Take(context, timings));
    return FactorizeMixed(context, plan, std::move(matrix), stop, kernel);
  }

  const MixedPlan plan;
};

// Sparse, by the plan of SparseChoice.
struct FactorStep::Sparse final : Kind {
  Sparse(FactorStep& step, const SparseFactorizePlan& plan)
      : Kind(step, {plan.bytes, plan.seconds, plan.options.method.lu->name()}) {}

  absl::StatusOr<Factorization> Run(ExecutionContext& context, StopRequested stop,
                                    CallTimings& timings, KernelTimings& kernel) override {
    timings.analyze += step.sparse_.seconds();
    timings.queue -= step.sparse_.seconds();
    const Factorization* last = nullptr;
    // The last factor is used only if it is in device memory: promoting it is not worthwhile.
    if (step.last_ != nullptr && step.last_->promotion_bytes() == 0) {
      bool promoted = false;
      CROUT_ASSIGN_OR_RETURN(last, step.last_->OnDevice(context, {}, &promoted));
    }
    CROUT_ASSIGN_OR_RETURN(Buffer matrix, step.upload_.Take(context, timings));
    return step.sparse_.Factor(context, last, std::move(matrix), step.memory_,
                               step.upload_.tenant(), stop, kernel);
  }
};

void FactorStep::PlanSparse() { kind_ = std::make_unique<Sparse>(*this, *sparse_.plan()); }

absl::StatusOr<std::unique_ptr<FactorStep>> FactorStep::Create(Engine& engine,
                                                               const MatrixSpec& matrix,
                                                               const FactorRequest& request,
                                                               DeviceSlot& slot, bool cached,
                                                               FactorCache::Pin* last) {
  CROUT_ASSIGN_OR_RETURN(const PayloadSpec spec,
                         CheckPayload(matrix, "matrix", engine.limits, *slot.device,
                                      PayloadRole::kMatrixAllowingSparse));
  auto step = std::unique_ptr<FactorStep>(new FactorStep(engine, spec, slot));
  step->cached_ = cached;
  step->last_ = last;
  step->request_ = request;
  step->requested_precision_ = request.precision;
  step->request_.precision = RequestedPrecision::kFactorType;
  const BatchLu* const batch_lu = slot.device->batch_lu();
  if (batch_lu != nullptr && request.algorithm == batch_lu->name()) {
    if (spec.needs_parsing()) return NotForBatches();
    step->named_batch_ = true;
    step->request_.algorithm = "auto";
    if (request.precision == RequestedPrecision::kAuto) {
      step->requested_precision_ = RequestedPrecision::kFactorType;  // batches have no other
    }
  }
  CROUT_RETURN_IF_ERROR(step->sparse_.ExtractMethodName(spec.needs_parsing(), &step->request_));
  CROUT_RETURN_IF_ERROR(step->CheckPrecision(spec.shape));
  CROUT_ASSIGN_OR_RETURN(step->options_, OptionsFor(step->request_, spec.shape.dtype));
  CROUT_RETURN_IF_ERROR(step->sparse_.CheckType(step->ChoiceInput()));
  // Refuse an algorithm that the device lacks before the payload arrives. The order does not matter
  // here.
  CROUT_RETURN_IF_ERROR(step->ResolveFor(/*n=*/0));
  return step;
}

absl::Status FactorStep::ResolveFor(int64_t n) {
  const Device& device = *slot_.device;
  CROUT_RETURN_IF_ERROR(Resolve(request_, device, n, &options_));
  CROUT_RETURN_IF_ERROR(ResolvePrecision(n));
  // Cached factors are prepared for later solves. A low-precision factor is always prepared,
  // because its corrections need many solves.
  const bool prepare = cached_ || precision_ != FactorPrecision::kFactorType;
  for (FactorizeOptions* options : {&options_, &first_}) {
    options->prepare = prepare
                           ? FindSolverToPrepare(device, options->algorithm->traits().unit_diagonal,
                                                 options->factor_dtype)
                           : nullptr;
  }
  return absl::OkStatus();
}

absl::Status FactorStep::CheckPrecision(const PackedMatrix& shape) const {
  if (requested_precision_ == RequestedPrecision::kFactorType) return absl::OkStatus();
  const auto refuse = [](absl::string_view why) { return BadField("options.precision", why); };
  if (request_.factor_dtype) {
    return refuse("it sets the factor's type: leave factor_dtype out");
  }
  if (requested_precision_ == RequestedPrecision::kAuto) return absl::OkStatus();
  if (!request_.keep_matrix) return refuse("solves are corrected with A: leave keep_matrix out");
  if (RealOf(shape.dtype) == DType::kFloat64) return absl::OkStatus();
  return refuse("the matrix is in single precision itself: leave the precision out");
}

absl::Status FactorStep::ResolvePrecision(int64_t n) {
  precision_ = FactorPrecision::kFactorType;
  first_ = options_;
  const DType wide = options_.factor_dtype;
  if (requested_precision_ == RequestedPrecision::kFactorType || RealOf(wide) != DType::kFloat64 ||
      !options_.keep_matrix) {
    return absl::OkStatus();
  }
  FactorizeOptions low = options_;
  low.factor_dtype = IsComplex(wide) ? DType::kComplex64 : DType::kFloat32;
  CROUT_RETURN_IF_ERROR(Resolve(request_, *slot_.device, n, &low));
  if (requested_precision_ == RequestedPrecision::kAuto) {
    const double rcond = last_ == nullptr ? 0 : last_->summary().rcond.value_or(0);
    precision_ = ChoosePrecision(*slot_.device, low, options_, n, rcond);
  } else {
    precision_ = requested_precision_ == RequestedPrecision::kTf32 ? FactorPrecision::kTf32
                                                                   : FactorPrecision::kSingle;
  }
  if (precision_ == FactorPrecision::kFactorType) return absl::OkStatus();
  if (precision_ == FactorPrecision::kTf32 && !low.algorithm->traits().supports_tf32_products) {
    return BadField("options.precision",
                    absl::StrCat("TF32 products are those of crout_lu on a GPU; device ",
                                 ToAbsl(slot_.device->info().name), " does not offer them",
                                 request_.names_algorithm() ? " by this algorithm" : "",
                                 ": choose the precision single or auto"));
  }
  low.parameters.tf32_products = precision_ == FactorPrecision::kTf32;
  const absl::Status taken = CheckParameters(low.algorithm->traits(), low.parameters);
  if (!taken.ok()) return BadField("options.precision", taken.message());
  first_ = std::move(low);
  return absl::OkStatus();
}

bool FactorStep::CanBatch() const {
  const BatchLu* const method = slot_.device->batch_lu();
  const PackedMatrix& shape = upload_.shape();
  if (method == nullptr || upload_.needs_parsing() || shape.rows < 1 || shape.rows != shape.cols) {
    return false;
  }
  const bool small = !request_.names_algorithm() && shape.rows <= engine_.limits.batching_max_order;
  return (named_batch_ || small) && method->traits().types.contains(shape.dtype) &&
         options_.factor_dtype == shape.dtype && precision_ == FactorPrecision::kFactorType &&
         options_.equilibrate != EquilibrateMode::kOn && !request_.condition &&
         !request_.determinant && !request_.parameters;
}

DynamicBatchShape FactorStep::BatchShape() const {
  return {.dtype = upload_.shape().dtype,
          .n = upload_.shape().rows,
          .factors = true,
          .keeps_factor = cached_,
          .keeps_matrix = options_.keep_matrix};
}

absl::Status FactorStep::AddToBatch(ExecutionContext& /*context*/, DynamicBatchSystem& system,
                                    CallTimings& /*timings*/) {
  system.shape = BatchShape();
  system.matrix = upload_.host_matrix();
  system.may_require_scaling = !named_batch_ && options_.equilibrate == EquilibrateMode::kAuto;
  system.device_bytes += batch_bytes_;
  return absl::OkStatus();
}

absl::StatusOr<FactorResult> FactorStep::ExtractFromBatch(DynamicBatchSystem& system,
                                                          const DynamicBatchTimings& batch,
                                                          CallTimings& timings) {
  timings.factor += batch.factor;
  FactorResult result{MakeNewFactor(std::move(system.made), batch.factor), nullptr};
  ShrinkToFactor(result.factor);
  return result;
}

absl::Status FactorStep::CheckKind() const {
  if (!sparse_.named() || sparse_.allowed()) return absl::OkStatus();
  return FieldError(absl::StatusCode::kUnimplemented, "options.algorithm",
                    absl::StrCat("with ", sparse_.name(), " that solver solves nothing"));
}

SparseChoiceInput FactorStep::ChoiceInput() const {
  // An explicit lower precision requires a dense factor. `auto` accepts the fastest method.
  return {.request = &request_,
          .dense = &options_,
          .first = &first_,
          .allows_sparse = requested_precision_ == RequestedPrecision::kAuto ||
                           precision_ == FactorPrecision::kFactorType};
}

absl::Status FactorStep::Analyze(StopRequested stop) {
  const int64_t n = upload_.shape().rows;
  if (sparse_.allowed()) CROUT_RETURN_IF_ERROR(ResolveFor(n));
  analyzed_ = true;
  if (last_ != nullptr && n != last_->summary().n) return absl::OkStatus();  // Plan() refuses it.
  CROUT_RETURN_IF_ERROR(sparse_.Analyze(upload_, ChoiceInput(), stop));
  if (sparse_.plan() != nullptr) PlanSparse();
  return absl::OkStatus();
}

absl::StatusOr<MemoryNeed> FactorStep::Plan() {
  const PackedMatrix& shape = upload_.shape();
  CROUT_RETURN_IF_ERROR(CheckSquare(shape, upload_.field()));
  if (last_ != nullptr) {
    CROUT_RETURN_IF_ERROR(CheckRows(shape, last_->summary().n, upload_.field(),
                                    absl::StatusCode::kFailedPrecondition));
  }
  if (kind_ == nullptr) {
    const bool known_singular = sparse_.has_empty_line() || sparse_.unmatched_row() >= 0;
    if (!known_singular) {
      CROUT_RETURN_IF_ERROR(CheckDimension(shape.rows, upload_.field(), engine_.limits));
    }
    const std::optional<int64_t> nnz = upload_.nnz();
    const bool sparse = nnz && ArrivesSparse(*slot_.device, shape.rows, *nnz, shape.dtype);
    if (sparse) upload_.KeepSparse();
    CROUT_RETURN_IF_ERROR(PlanFor(shape, sparse ? nnz : std::nullopt).status());
  }
  const JobBytes& bytes = kind_->estimate.bytes;
  return MemoryNeed{.device = FactorCache::Charge(bytes.peak) + kind_->promotion_bytes,
                    .host = bytes.report};
}

absl::StatusOr<FactorStep::Estimate> FactorStep::PlanFor(const PackedMatrix& shape,
                                                         std::optional<int64_t> nonzeros) {
  if (named_batch_ && !batched_) return NotForBatches();
  CROUT_RETURN_IF_ERROR(ResolveFor(shape.rows));
  if (precision_ == FactorPrecision::kFactorType) {
    FactorizeOptions options = options_;
    if (last_ != nullptr && CanStartFrom(last_->summary(), options)) {
      options.parameters.start.emplace();  // Run() sets the view.
    }
    CROUT_ASSIGN_OR_RETURN(FactorizePlan plan, PlanFactorize(options, shape, nonzeros));
    kind_ = std::make_unique<Dense>(*this, std::move(plan));
  } else {
    CROUT_ASSIGN_OR_RETURN(MixedPlan plan,
                           PlanMixed(precision_, first_, options_, shape, nonzeros));
    kind_ = std::make_unique<Mixed>(*this, std::move(plan));
  }
  if (batched_) CROUT_RETURN_IF_ERROR(PlanForBatch(shape));
  return kind_->estimate;
}

absl::StatusOr<FactorStep::Estimate> FactorStep::PlanForPattern(const SparseSummary& known,
                                                                DType matrix_dtype) {
  CROUT_RETURN_IF_ERROR(ResolveFor(known.analysis->n));
  CROUT_RETURN_IF_ERROR(sparse_.PlanForPattern(known, matrix_dtype, ChoiceInput()));
  PlanSparse();
  return kind_->estimate;
}

absl::StatusOr<std::optional<FactorStep::Estimate>> FactorStep::Guess(int64_t n, int64_t nonzeros,
                                                                      DType matrix_dtype) {
  CROUT_RETURN_IF_ERROR(ResolveFor(n));
  const SparseChoice::Guess guess = sparse_.GuessFor(n, nonzeros, matrix_dtype, ChoiceInput());
  constexpr int64_t kMaxEntries = std::numeric_limits<int32_t>::max();
  if (nonzeros > kMaxEntries && (sparse_.named() || n > engine_.limits.max_n)) {
    return BadField("nnz", absl::StrCat(nonzeros, " is more than the ", kMaxEntries,
                                        " entries allowed for a sparse factorization"));
  }
  if (guess.method == nullptr) return std::optional<Estimate>();
  Estimate estimate{guess.bytes, guess.seconds, guess.method->name()};
  estimate.rough = true;
  return std::optional(estimate);
}

absl::Status FactorStep::PlanForBatch(const PackedMatrix& shape) {
  const BatchLu& method = *slot_.device->batch_lu();
  CROUT_ASSIGN_OR_RETURN(const DynamicBatchBytes bytes, PlanDynamicBatch(method, BatchShape()));
  batch_bytes_ = bytes.device;
  Estimate& estimate = kind_->estimate;
  // A matrix that needs scaling runs alone after the batch, so the peak must cover both cases.
  estimate.bytes.peak = std::max(estimate.bytes.peak, bytes.device);
  estimate.bytes.kept = bytes.kept;
  estimate.bytes.report += BlockBytes(shape.bytes()) + bytes.host;
  estimate.seconds = PredictDynamicBatchSeconds(method, BatchShape());
  estimate.algorithm = method.name();
  return absl::OkStatus();
}

absl::Status FactorStep::ExpectOrder(int64_t n) {
  expected_n_ = n;
  return ResolveFor(n);
}

FactorSummary FactorStep::Expected() const {
  if (sparse_.plan() != nullptr) return sparse_.Expected();
  FactorSummary summary;
  summary.algorithm = first_.algorithm->traits().name;
  summary.n = upload_.shape().rows > 0 ? upload_.shape().rows : expected_n_;
  summary.factor_dtype = first_.factor_dtype;
  summary.precision = precision_;
  summary.matrix_dtype = upload_.shape().dtype;
  summary.unit_diagonal = first_.algorithm->traits().unit_diagonal;
  // Assume properties for which a solve needs the most memory.
  summary.row_scaled = first_.equilibrate != EquilibrateMode::kOff;
  summary.col_scaled = summary.row_scaled;
  if (first_.prepare != nullptr) summary.preparation.emplace();
  return summary;
}

absl::StatusOr<std::optional<FactorResult>> FactorStep::FindSingular() {
  CROUT_RETURN_IF_ERROR(Plan().status());  // only for its checks
  CROUT_ASSIGN_OR_RETURN(std::optional<NewFactor> factor,
                         crout::FindSingular(engine_, slot_, upload_, options_, sparse_));
  if (!factor) return std::optional<FactorResult>();
  return std::optional(FactorResult{*std::move(factor), nullptr});
}

absl::StatusOr<NewFactor> FactorStep::Factor(ExecutionContext& context, StopRequested stop,
                                             CallTimings& timings) {
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(Factorization made, kind_->Run(context, stop, timings, kernel));
  timings.Add(kernel);
  NewFactor factor = MakeNewFactor(std::move(made), kernel.factor);
  if (kind_->mixed == nullptr) ShrinkToFactor(factor);
  factor.record = ExtractRecord(factor.factorization.summary, std::move(memory_.host),
                                engine_.cache.OwnerOnHost(upload_.tenant(), ShareUse::kCache));
  factor.nnz = upload_.nnz();
  return factor;
}

absl::Status FactorStep::RefactorInFloat64(ExecutionContext& context, StopRequested stop,
                                           CallTimings& timings, NewFactor& factor) {
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(
      factor.factorization,
      crout::RefactorInFloat64(context, *kind_->mixed, std::move(factor.factorization),
                               PrecisionFallback::kStagnation, stop, kernel));
  timings.Add(kernel);
  engine_.events.OnFactor(slot_, factor.factorization.summary, kernel.factor);
  return absl::OkStatus();
}

}  // namespace crout
