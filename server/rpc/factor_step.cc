#include "server/rpc/factor_step.h"

#include <algorithm>
#include <utility>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize_mixed.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/rpc/decode.h"
#include "server/rpc/names.h"
#include "server/rpc/observe.h"

namespace crout {

absl::StatusOr<std::optional<NewFactor>> FindSingular(ServerCore& core, DeviceSlot& slot,
                                                      MatrixUpload& upload,
                                                      const FactorizeOptions& options, int64_t n) {
  CROUT_ASSIGN_OR_RETURN(const std::optional<LeadingBlock> block, upload.InspectLeadingBlock(n));
  if (!block || (!block->empty_row && !block->empty_column)) return std::optional<NewFactor>();
  NewFactor factor;
  CROUT_ASSIGN_OR_RETURN(factor.reservation,
                         core.cache.ReserveOnDevice(slot, FactorCache::Charge(0)));
  factor.factorization = SingularFactorization(
      options, upload.shape().dtype, n,
      block->empty_row ? SingularReason::kEmptyRow : SingularReason::kEmptyColumn,
      (block->empty_row ? *block->empty_row : *block->empty_column) + 1);
  factor.factorization.summary.norm_one = block->norm_one;
  factor.factorization.summary.norm_inf = block->norm_inf;
  factor.slot = &slot;
  return std::optional(std::move(factor));
}

FactorInfo DescribeDropped(NewFactor factor) {
  FactorInfo info;
  info.summary = std::move(factor.factorization.summary);
  info.record = std::move(factor.record);
  info.device = factor.slot->device->info().name;
  info.nnz = factor.nnz;
  info.timings = factor.timings;
  return info;
}

namespace {

// Why a matrix is not factored by the method of batches, by whose name it was asked for.
absl::Status NotForBatches() {
  return BadField("header.options.algorithm",
                  "irr_lu factors a dense matrix of order 1 or more as it is: without another type "
                  "or precision, equilibration, condition estimate, determinant, parameters, or "
                  "the options that Solve has beside verification");
}

}  // namespace

absl::StatusOr<std::unique_ptr<FactorStep>> FactorStep::Create(ServerCore& core,
                                                               const v1::MatrixSpec& matrix,
                                                               const v1::FactorizeOptions& options,
                                                               DeviceSlot& slot, bool cached) {
  CROUT_ASSIGN_OR_RETURN(const PayloadSpec spec,
                         DecodePayload(matrix, "header.matrix", core.limits, *slot.device));
  auto step = std::unique_ptr<FactorStep>(new FactorStep(core, spec, slot));
  step->cached_ = cached;
  step->request_ = options;
  step->asked_ = options.precision();
  step->request_.clear_precision();
  const BatchLu* const batch_lu = slot.device->batch_lu();
  if (batch_lu != nullptr && AlgorithmName(options.algorithm()) == batch_lu->name()) {
    if (spec.text) return NotForBatches();
    step->named_batch_ = true;
    step->request_.clear_algorithm();
  }
  CROUT_RETURN_IF_ERROR(step->CheckPrecision(spec.shape));
  CROUT_ASSIGN_OR_RETURN(step->options_, DecodeOptions(step->request_, spec.shape.dtype));
  // A name that the device lacks is refused before the payload, whatever the order will be.
  CROUT_RETURN_IF_ERROR(step->ResolveFor(/*n=*/0));
  return step;
}

absl::Status FactorStep::ResolveFor(int64_t n) {
  const Device& device = *slot_.device;
  CROUT_RETURN_IF_ERROR(Resolve(request_, device, n, &options_));
  CROUT_ASSIGN_OR_RETURN(low_, ResolveLow(n));
  // What is corrected is solved with often enough to be prepared for it.
  const auto prepare = [&](FactorizeOptions& options) {
    options.prepare = cached_ || low_
                          ? FindSolverToPrepare(device, options.algorithm->traits().unit_diagonal,
                                                options.factor_dtype)
                          : nullptr;
  };
  prepare(options_);
  if (low_) prepare(*low_);
  return absl::OkStatus();
}

absl::Status FactorStep::CheckPrecision(const PackedMatrix& shape) const {
  if (asked_ == v1::FACTOR_PRECISION_UNSPECIFIED) return absl::OkStatus();
  const auto refuse = [](absl::string_view why) {
    return BadField("header.options.precision", why);
  };
  if (!v1::FactorPrecision_IsValid(asked_)) return refuse("unknown value");
  if (request_.factor_dtype() != v1::DTYPE_UNSPECIFIED) {
    return refuse("it says the factor's type: leave factor_dtype out");
  }
  if (asked_ == v1::FACTOR_PRECISION_AUTO) return absl::OkStatus();
  if (request_.drop_matrix()) return refuse("solves are corrected with A: leave drop_matrix out");
  if (RealOf(shape.dtype) == DType::kFloat64) return absl::OkStatus();
  return refuse("the matrix is in single precision itself");
}

absl::StatusOr<std::optional<FactorizeOptions>> FactorStep::ResolveLow(int64_t n) {
  precision_ = FactorPrecision::kAsTyped;
  std::optional<FactorizeOptions> low;
  const DType wide = options_.factor_dtype;
  if (asked_ == v1::FACTOR_PRECISION_UNSPECIFIED || RealOf(wide) != DType::kFloat64 ||
      !options_.keep_matrix) {
    return low;
  }
  low = options_;
  low->factor_dtype = IsComplex(wide) ? DType::kComplex64 : DType::kFloat32;
  CROUT_RETURN_IF_ERROR(Resolve(request_, *slot_.device, n, &*low));
  if (asked_ == v1::FACTOR_PRECISION_AUTO) {
    const double rcond = start_ == nullptr ? 0 : start_->summary().rcond.value_or(0);
    precision_ = ChoosePrecision(*slot_.device, *low, options_, n, rcond);
  } else {
    precision_ =
        asked_ == v1::FACTOR_PRECISION_TF32 ? FactorPrecision::kTf32 : FactorPrecision::kSingle;
  }
  if (precision_ == FactorPrecision::kAsTyped) return std::optional<FactorizeOptions>();
  low->parameters.tf32_products = precision_ == FactorPrecision::kTf32;
  const absl::Status taken = CheckParameters(low->algorithm->traits(), low->parameters);
  if (!taken.ok()) return BadField("header.options.precision", taken.message());
  return low;
}

bool FactorStep::CanGather() const {
  const BatchLu* const method = slot_.device->batch_lu();
  const PackedMatrix& shape = upload_.shape();
  if (method == nullptr || upload_.text() || shape.rows < 1 || shape.rows != shape.cols) {
    return false;
  }
  const bool by_default = request_.algorithm() == v1::ALGORITHM_UNSPECIFIED ||
                          request_.algorithm() == v1::ALGORITHM_AUTO;
  const bool small = by_default && shape.rows <= core_.limits.gather_max_order;
  return (named_batch_ || small) && method->traits().types.contains(shape.dtype) &&
         options_.factor_dtype == shape.dtype && !low_ &&
         options_.equilibrate != EquilibrateMode::kOn && !request_.condition() &&
         !request_.determinant() && !request_.has_parameters();
}

void FactorStep::Gather() {
  gathers_ = true;
  upload_.HoldOnHost();
}

GatheredShape FactorStep::GatheredAs() const {
  return {.dtype = upload_.shape().dtype,
          .n = upload_.shape().rows,
          .factors = true,
          .keeps_factor = cached_,
          .keeps_matrix = options_.keep_matrix};
}

void FactorStep::PutIn(GatheredSystem& system) {
  system.shape = GatheredAs();
  system.matrix = upload_.held();
  system.may_ask_for_scaling = !named_batch_ && options_.equilibrate == EquilibrateMode::kAuto;
  system.device_bytes += gathered_bytes_.device;
}

NewFactor FactorStep::TakeOut(GatheredSystem& system, double seconds) {
  NewFactor factor;
  factor.factorization = std::move(system.made);
  ObserveFactor(core_, slot_, factor.factorization.summary, seconds);
  factor.reservation = std::move(memory_.device);
  Settle(factor);
  factor.slot = &slot_;
  return factor;
}

absl::StatusOr<MemoryNeed> FactorStep::Plan() {
  const PackedMatrix& shape = upload_.shape();
  if (named_batch_ && !gathers_) return NotForBatches();
  CROUT_RETURN_IF_ERROR(CheckSquare(shape, upload_.field()));
  if (order_) {
    CROUT_RETURN_IF_ERROR(
        CheckRows(shape, *order_, upload_.field(), absl::StatusCode::kFailedPrecondition));
  }
  const std::optional<int64_t> nnz = upload_.nnz();
  const bool sparse = nnz && ArrivesSparse(*slot_.device, shape.rows, *nnz, shape.dtype);
  if (sparse) upload_.KeepSparse();
  CROUT_ASSIGN_OR_RETURN(const Outlook outlook, PlanFor(shape, sparse ? nnz : std::nullopt));
  if (gathers_) {
    const BatchLu& method = *slot_.device->batch_lu();
    CROUT_ASSIGN_OR_RETURN(gathered_bytes_, PlanGathered(method, GatheredAs()));
    gathered_seconds_ = PredictGatheredSeconds(method, GatheredAs());
    // A matrix that asks to be scaled goes by itself, after the batch.
    const size_t peak = std::max(outlook.bytes.peak, gathered_bytes_.device);
    return MemoryNeed{
        .device = FactorCache::Charge(peak),
        .host = outlook.bytes.report + BlockBytes(shape.bytes()) + gathered_bytes_.host};
  }
  return MemoryNeed{.device = FactorCache::Charge(outlook.bytes.peak) + promotion_bytes_,
                    .host = outlook.bytes.report};
}

absl::StatusOr<FactorStep::Outlook> FactorStep::PlanFor(const PackedMatrix& shape,
                                                        std::optional<int64_t> nonzeros) {
  CROUT_RETURN_IF_ERROR(ResolveFor(shape.rows));
  options_.parameters.start.reset();
  promotion_bytes_ = 0;
  if (StartsWarm()) {
    options_.parameters.start.emplace();  // The view is known when the job runs.
    promotion_bytes_ = start_->promotion_bytes();
  }
  plan_.reset();
  mixed_.reset();
  Outlook outlook;
  if (low_) {
    CROUT_ASSIGN_OR_RETURN(mixed_, PlanMixed(precision_, *low_, options_, shape, nonzeros));
    outlook.bytes = mixed_->bytes;
    outlook.bytes.kept = mixed_->low.bytes.kept;
  } else {
    CROUT_ASSIGN_OR_RETURN(plan_, PlanFactorize(options_, shape, nonzeros));
    outlook.bytes = plan_->bytes;
  }
  outlook.seconds = PredictSeconds();
  outlook.algorithm = first().algorithm->traits().name;
  outlook.precision = precision_;
  return outlook;
}

bool FactorStep::StartsWarm() const {
  if (start_ == nullptr || low_ || !options_.algorithm->traits().iterative) return false;
  const FactorSummary& start = start_->summary();
  return start.info == 0 && start.n == upload_.shape().rows && start.n > 0 &&
         start.factor_dtype == options_.factor_dtype;
}

absl::Status FactorStep::ExpectOrder(int64_t n) {
  expected_n_ = n;
  return ResolveFor(n);
}

FactorSummary FactorStep::Expected() const {
  FactorSummary summary;
  summary.algorithm = first().algorithm->traits().name;
  summary.n = upload_.shape().rows > 0 ? upload_.shape().rows : expected_n_;
  summary.factor_dtype = first().factor_dtype;
  summary.precision = precision_;
  summary.matrix_dtype = upload_.shape().dtype;
  summary.unit_diagonal = first().algorithm->traits().unit_diagonal;
  // The most that a solve could need.
  summary.row_scaled = first().equilibrate != EquilibrateMode::kOff;
  summary.col_scaled = summary.row_scaled;
  if (first().prepare != nullptr) summary.preparation.emplace();
  return summary;
}

absl::StatusOr<std::optional<NewFactor>> FactorStep::FindSingular() {
  CROUT_RETURN_IF_ERROR(Plan().status());  // its checks
  CROUT_ASSIGN_OR_RETURN(
      std::optional<NewFactor> factor,
      crout::FindSingular(core_, slot_, upload_, options_, upload_.shape().rows));
  if (factor) factor->nnz = upload_.nnz();
  return factor;
}

absl::StatusOr<NewFactor> FactorStep::Run(ExecutionContext& context, StopRequested stop,
                                          CallTimings& timings) {
  if (plan_ && plan_->options.parameters.start) {
    Stopwatch watch;
    bool promoted = false;
    CROUT_ASSIGN_OR_RETURN(
        const Factorization* start,
        start_->OnDevice(context, memory_.device.Split(promotion_bytes_), &promoted));
    plan_->options.parameters.start = start->view();
    timings.host_to_device += watch.Lap();
  }
  // Taken last: until then the upload waits for what still arrives, on every way out.
  CROUT_ASSIGN_OR_RETURN(Buffer matrix, upload_.Take(context, timings));
  KernelTimings kernel;
  NewFactor factor;
  CROUT_ASSIGN_OR_RETURN(factor.factorization,
                         mixed_ ? FactorizeMixed(context, *mixed_, std::move(matrix), stop, kernel)
                                : Factorize(context, *plan_, std::move(matrix), stop, kernel));
  timings.factor += kernel.factor;
  ObserveFactor(core_, slot_, factor.factorization.summary, kernel.factor);
  factor.reservation = std::move(memory_.device);
  if (!(may_widen_ && mixed_)) Settle(factor);
  factor.record = TakeRecord(factor.factorization.summary, std::move(memory_.host));
  factor.slot = &slot_;
  factor.nnz = upload_.nnz();
  return factor;
}

absl::Status FactorStep::Widen(ExecutionContext& context, StopRequested stop, CallTimings& timings,
                               NewFactor& factor) {
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(factor.factorization,
                         crout::Widen(context, *mixed_, std::move(factor.factorization),
                                      PrecisionFallback::kStagnation, stop, kernel));
  timings.factor += kernel.factor;
  ObserveFactor(core_, slot_, factor.factorization.summary, kernel.factor);
  return absl::OkStatus();
}

void FactorStep::Settle(NewFactor& factor) {
  factor.reservation.Shrink(FactorCache::Charge(factor.factorization.parts.bytes()));
}

}  // namespace crout
