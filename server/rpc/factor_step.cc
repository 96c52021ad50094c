#include "server/rpc/factor_step.h"

#include <algorithm>
#include <utility>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
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

absl::StatusOr<std::unique_ptr<FactorStep>> FactorStep::Create(ServerCore& core,
                                                               const v1::MatrixSpec& matrix,
                                                               const v1::FactorizeOptions& options,
                                                               DeviceSlot& slot, bool cached) {
  CROUT_ASSIGN_OR_RETURN(const PayloadSpec spec,
                         DecodePayload(matrix, "header.matrix", core.limits, *slot.device));
  auto step = std::unique_ptr<FactorStep>(new FactorStep(core, spec, slot));
  CROUT_ASSIGN_OR_RETURN(step->options_, DecodeOptions(options, spec.shape.dtype));
  step->cached_ = cached;
  step->request_ = options;
  // A name that the device lacks is refused before the payload, whatever the order will be.
  CROUT_RETURN_IF_ERROR(step->ResolveFor(/*n=*/0));
  return step;
}

absl::Status FactorStep::ResolveFor(int64_t n) {
  const Device& device = *slot_.device;
  CROUT_RETURN_IF_ERROR(Resolve(request_, device, n, &options_));
  const UnitDiagonal unit_diagonal = options_.algorithm->traits().unit_diagonal;
  options_.prepare =
      cached_ ? FindSolverToPrepare(device, unit_diagonal, options_.factor_dtype) : nullptr;
  return absl::OkStatus();
}

absl::StatusOr<MemoryNeed> FactorStep::Plan() {
  const PackedMatrix& shape = upload_.shape();
  CROUT_RETURN_IF_ERROR(CheckSquare(shape, upload_.field()));
  if (order_) {
    CROUT_RETURN_IF_ERROR(
        CheckRows(shape, *order_, upload_.field(), absl::StatusCode::kFailedPrecondition));
  }
  CROUT_RETURN_IF_ERROR(ResolveFor(shape.rows));
  options_.parameters.start.reset();
  promotion_bytes_ = 0;
  if (StartsWarm()) {
    options_.parameters.start.emplace();  // The view is known when the job runs.
    promotion_bytes_ = start_->promotion_bytes();
  }
  const std::optional<int64_t> nnz = upload_.nnz();
  const bool sparse = nnz && ArrivesSparse(*slot_.device, shape.rows, *nnz, shape.dtype);
  if (sparse) upload_.KeepSparse();
  CROUT_ASSIGN_OR_RETURN(plan_, PlanFactorize(options_, shape, sparse ? nnz : std::nullopt));
  return MemoryNeed{.device = FactorCache::Charge(plan_->bytes.peak) + promotion_bytes_,
                    .host = plan_->bytes.report};
}

bool FactorStep::StartsWarm() const {
  if (start_ == nullptr || !options_.algorithm->traits().iterative) return false;
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
  summary.algorithm = options_.algorithm->traits().name;
  summary.n = upload_.shape().rows > 0 ? upload_.shape().rows : expected_n_;
  summary.factor_dtype = options_.factor_dtype;
  summary.matrix_dtype = upload_.shape().dtype;
  summary.unit_diagonal = options_.algorithm->traits().unit_diagonal;
  // The most that a solve could need.
  summary.row_scaled = options_.equilibrate != EquilibrateMode::kOff;
  summary.col_scaled = summary.row_scaled;
  if (options_.prepare != nullptr) summary.preparation.emplace();
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
  if (plan_->options.parameters.start) {
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
                         Factorize(context, *plan_, std::move(matrix), stop, kernel));
  timings.factor += kernel.factor;
  ObserveFactor(core_, slot_, factor.factorization.summary, kernel.factor);
  memory_.device.Shrink(FactorCache::Charge(factor.factorization.parts.bytes()));
  factor.reservation = std::move(memory_.device);
  factor.record = TakeRecord(factor.factorization.summary, std::move(memory_.host));
  factor.slot = &slot_;
  factor.nnz = upload_.nnz();
  return factor;
}

}  // namespace crout
