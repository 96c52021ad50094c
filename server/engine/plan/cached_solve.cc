// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/cached_solve.h"

#include <utility>
#include <vector>

#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/engine/plan/batch_steps.h"

namespace crout {
namespace {

// `Step` is SolveStep or BatchSolveStep.
template <class Step>
class CachedSolve : public JobPlan<CachedSolution> {
 public:
  explicit CachedSolve(FactorCache::Pin pin) : pin_(std::move(pin)) {}

  FactorCache::Pin& pin() { return pin_; }
  ExpectedFactor factor() const { return {pin_.summary(), pin_.has_matrix()}; }
  void SetStep(std::unique_ptr<Step> step) {
    step_ = std::move(step);
    step_->AddPromotion(pin_.promotion_bytes());
  }

  std::vector<PayloadStep*> steps() override { return {step_.get()}; }
  double PredictSeconds() override { return step_->PredictSeconds(); }
  absl::StatusOr<CachedSolution> Run(ExecutionContext& context, const JobControl& control,
                                     CallTimings& timings) override {
    CROUT_ASSIGN_OR_RETURN(const Factorization* factor, Promote(context, timings));
    CROUT_ASSIGN_OR_RETURN(Solution solution, step_->Run(context, *factor, control.stop, timings));
    return Result(std::move(solution));
  }

 protected:
  // Copies the factor to its device if it is in host memory.
  absl::StatusOr<const Factorization*> Promote(ExecutionContext& context, CallTimings& timings) {
    Stopwatch watch;
    CROUT_ASSIGN_OR_RETURN(const Factorization* factor,
                           pin_.OnDevice(context, step_->TakePromotion(), &promoted_));
    timings.host_to_device += watch.Lap();
    return factor;
  }
  CachedSolution Result(Solution solution) const {
    return {std::move(solution), pin_.version(), promoted_};
  }

  FactorCache::Pin pin_;
  std::unique_ptr<Step> step_;  // refers to the pin
  bool promoted_ = false;
};

class MatrixSolve final : public CachedSolve<SolveStep>, private BatchForm<CachedSolution> {
 public:
  using CachedSolve::CachedSolve;

  BatchForm<CachedSolution>* batch_form() override { return step_->batched() ? this : nullptr; }

 private:
  DType batch_dtype() override { return step_->upload().shape().dtype; }
  Op batch_op() override { return step_->op(); }
  absl::Status AddToBatch(ExecutionContext& context, DynamicBatchSystem& system,
                          CallTimings& timings) override {
    CROUT_ASSIGN_OR_RETURN(system.factor, Promote(context, timings));
    return step_->AddToBatch(system);
  }
  absl::StatusOr<CachedSolution> ExtractFromBatch(DynamicBatchSystem& system,
                                                  const DynamicBatchTimings& batch,
                                                  CallTimings& timings) override {
    timings.solve += batch.solve;
    return Result(step_->ExtractFromBatch(system, system.factor->summary, batch.solve));
  }
};

// Whether the factor is as dynamic batches produce it: dense, by the device's batch method, in the
// type of the matrix. Only such a factor can be used in a dynamic batch.
bool IsOfBatchMethod(const FactorCache::Pin& factor) {
  const BatchLu* const method = factor.slot().device->batch_lu();
  const FactorSummary& summary = factor.summary();
  return method != nullptr && summary.algorithm == method->name() && summary.n > 0 &&
         summary.factor_dtype == summary.matrix_dtype && summary.matrix_nonzeros == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobPlan<CachedSolution>>> PlanCachedSolve(
    Engine& engine, FactorCache::Pin pin, const MatrixSpec& rhs, const SolveRequest& request) {
  DeviceSlot& slot = pin.slot();
  if (pin.summary().batch) {
    auto solve = std::make_unique<CachedSolve<BatchSolveStep>>(std::move(pin));
    CROUT_ASSIGN_OR_RETURN(
        auto step, BatchSolveStep::Create(engine, rhs, request, "header.options", slot,
                                          solve->factor(), absl::StatusCode::kFailedPrecondition));
    solve->SetStep(std::move(step));
    return solve;
  }
  CROUT_RETURN_IF_ERROR(CheckSolvable(pin.summary()));
  if (rhs.batch_rhs) {
    return absl::FailedPreconditionError(
        "header.rhs: the handle belongs to a single matrix: send one right-hand side, with any "
        "number of columns");
  }
  auto solve = std::make_unique<MatrixSolve>(std::move(pin));
  CROUT_ASSIGN_OR_RETURN(auto step, SolveStep::Create(
                                        engine, rhs, request, "header.options", slot,
                                        [plan = solve.get()] { return plan->factor(); },
                                        absl::StatusCode::kFailedPrecondition));
  if (IsOfBatchMethod(solve->pin()) &&
      SolveStep::CanBatch(engine.limits, rhs, request, solve->pin().summary().factor_dtype,
                          /*any_size=*/false)) {
    step->EnableBatching();
  }
  solve->SetStep(std::move(step));
  return solve;
}

}  // namespace crout
