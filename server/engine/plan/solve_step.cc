// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/solve_step.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/algorithm_registry.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/solve.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/engine/error.h"
#include "server/engine/plan/batch_steps.h"

namespace crout {
namespace {

// Largest number of corrections of a solve. More corrections would cost more than a factorization
// in float64, on every device.
constexpr int kMaxCorrections = 100;

// Number of refinement steps after which the error of a solve with a sparse factor is roundoff.
constexpr int kSparseRefinement = 2;

// `Step` is SolveStep or BatchSolveStep.
template <class Step>
class CachedSolve : public JobPlan<CachedSolution> {
 public:
  explicit CachedSolve(FactorCache::Pin pin) : pin_(std::move(pin)) {}

  FactorCache::Pin& pin() { return pin_; }
  ExpectedFactor factor() const {
    return {.summary = pin_.summary(),
            .has_matrix = pin_.has_matrix(),
            .chooser = pin_.home().device.get()};
  }
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

// Returns the solver of `device` that `chooser`, a device of the same model, would choose.
absl::StatusOr<const TriangularSolver*> FindSolverAs(const Device& chooser, const Device& device,
                                                     const std::string& name,
                                                     const FactorSummary& factor, int64_t nrhs) {
  CROUT_ASSIGN_OR_RETURN(const TriangularSolver* const chosen,
                         FindSolver(chooser, name, factor, nrhs));
  return &chooser == &device ? chosen : FindSolver(device, chosen->name(), factor, nrhs);
}

// Returns true if a dynamic batch can solve with the factor: it is dense, made by the device's
// batch method, and has the type of the matrix. Dynamic batches make such factors.
bool IsOfBatchMethod(const FactorCache::Pin& factor) {
  const BatchLu* const method = factor.slot().device->batch_lu();
  const FactorSummary& summary = factor.summary();
  return method != nullptr && summary.algorithm == method->name() && summary.n > 0 &&
         summary.factor_dtype == summary.matrix_dtype && summary.matrix_nonzeros == 0;
}

}  // namespace

absl::Status CheckSolvable(const FactorSummary& factor) {
  const absl::Status usable = CheckUsable(factor);
  return usable.ok() ? usable : WithReason(usable, kReasonSingular);
}

absl::StatusOr<std::unique_ptr<SolveStep>> SolveStep::Create(
    Engine& engine, const MatrixSpec& rhs, const SolveRequest& request, absl::string_view field,
    DeviceSlot& slot, std::function<ExpectedFactor()> expected, absl::StatusCode mismatch) {
  CROUT_ASSIGN_OR_RETURN(
      const PayloadSpec spec,
      CheckPayload(rhs, "rhs", engine.limits, *slot.device, PayloadRole::kRightHandSide));
  auto step = std::unique_ptr<SolveStep>(new SolveStep(engine, spec, slot));
  step->options_ = request.options;
  step->field_ = std::string(field);
  step->solver_ = request.solver;
  step->expected_ = std::move(expected);
  step->mismatch_ = mismatch;
  return step;
}

absl::Status SolveStep::Replan() {
  if (!provisional_ && !expected_().summary.sparse) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(const MemoryNeed need, Plan());
  const auto reserve = [](size_t bytes, Reservation& held, auto more) -> absl::Status {
    if (bytes <= held.bytes()) return absl::OkStatus();
    CROUT_ASSIGN_OR_RETURN(Reservation beyond, more(bytes - held.bytes()));
    held.Absorb(std::move(beyond));
    return absl::OkStatus();
  };
  CROUT_RETURN_IF_ERROR(reserve(need.device, memory_.device, [&](size_t bytes) {
    return engine_.cache.ReserveOnDevice(slot_, bytes, upload_.tenant());
  }));
  return reserve(need.host, memory_.host, [&](size_t bytes) {
    return engine_.cache.ReserveOnHost(bytes, upload_.tenant());
  });
}

SolveOptions WithCorrections(SolveOptions options, const FactorSummary& factor, bool has_matrix) {
  options.verify &= has_matrix;
  if (factor.precision != FactorPrecision::kFactorType) options.max_corrections = kMaxCorrections;
  if (!factor.sparse || !has_matrix) return options;
  // Refinement alone may not converge if the factor is inaccurate: it has perturbed pivots or large
  // growth, or its test solve had a large error.
  if (IsUnstable(factor.sparse->numeric) || factor.is_poor()) {
    options.max_corrections = kMaxCorrections;
  } else {
    options.max_refinement_steps = std::max(options.max_refinement_steps, kSparseRefinement);
  }
  return options;
}

absl::StatusOr<MemoryNeed> SolveStep::Plan() {
  const auto [factor, has_matrix, may_become_sparse, chooser] = expected_();
  const Device& device = *slot_.device;
  const PackedMatrix& shape = upload_.shape();
  CROUT_RETURN_IF_ERROR(CheckRows(shape, factor.n, upload_.field(), mismatch_));
  // The requested solver may accept only sparse factors. Use "auto" until the matrix is analyzed.
  provisional_ = may_become_sparse;
  CROUT_ASSIGN_OR_RETURN(options_.solver,
                         FindSolverAs(chooser != nullptr ? *chooser : device, device,
                                      may_become_sparse ? "auto" : solver_, factor, shape.cols));
  if (options_.solver->needs_preparation()) {
    FactorSummary unprepared;
    unprepared.unit_diagonal = factor.unit_diagonal;
    unprepared.factor_dtype = factor.factor_dtype;
    unprepared.n = factor.n;
    CROUT_ASSIGN_OR_RETURN(options_.fallback, FindSolverAs(chooser != nullptr ? *chooser : device,
                                                           device, "auto", unprepared, shape.cols));
  }
  const absl::Status taken = CheckTolerance(*options_.solver, options_.solver_tolerance);
  if (!taken.ok()) return BadField(absl::StrCat(field_, ".solver_tolerance"), taken.message());
  const SolveOptions options = WithCorrections(options_, factor, has_matrix);
  CROUT_ASSIGN_OR_RETURN(plan_, PlanSolve(options, factor, shape));
  CROUT_RETURN_IF_ERROR(CheckMatrix(*plan_, factor, has_matrix));  // before the payload arrives
  if (batched_) {
    CROUT_ASSIGN_OR_RETURN(
        batch_bytes_,
        PlanDynamicBatch(*slot_.device->batch_lu(),
                         {.dtype = shape.dtype, .n = shape.rows, .nrhs = shape.cols}));
    return MemoryNeed{.device = std::max(plan_->bytes.peak, batch_bytes_.device) + promotion_bytes_,
                      .host = plan_->bytes.reply + BlockBytes(shape.bytes()) + batch_bytes_.host};
  }
  return MemoryNeed{.device = plan_->bytes.peak + promotion_bytes_, .host = plan_->bytes.reply};
}

bool SolveStep::CanBatch(const EngineLimits& limits, const MatrixSpec& rhs,
                         const SolveRequest& request, DType dtype, bool any_size) {
  const PackedMatrix& shape = rhs.shape;
  if (rhs.needs_parsing() || rhs.values || shape.rows < 1 || shape.cols < 1) return false;
  const SolveOptions& options = request.options;
  return shape.dtype == dtype && !request.names_solver() &&
         (any_size || shape.cols <= limits.batching_max_order) && options.solver_tolerance == 0 &&
         options.max_refinement_steps == 0 && !options.error_bound &&
         !options.componentwise_error && !options.refine_componentwise;
}

void SolveStep::EnableBatching() {
  batched_ = true;
  upload_.KeepOnHost();
}

Op SolveStep::op() const {
  // For a real matrix, transpose and conjugate transpose are the same.
  const bool real = !IsComplex(upload_.shape().dtype);
  return real && options_.op == Op::kConjugateTranspose ? Op::kTranspose : options_.op;
}

absl::Status SolveStep::AddToBatch(DynamicBatchSystem& system) {
  CROUT_ASSIGN_OR_RETURN(out_, engine_.host_memory.Allocate(plan_->delivered.bytes()));
  system.shape.dtype = upload_.shape().dtype;
  system.shape.n = upload_.shape().rows;
  system.shape.nrhs = upload_.shape().cols;
  system.rhs = upload_.host_matrix();
  system.verify = plan_->options.verify;
  system.x = out_.data();
  system.device_bytes += batch_bytes_.device;
  return absl::OkStatus();
}

Solution SolveStep::ExtractFromBatch(DynamicBatchSystem& system, const FactorSummary& factor,
                                     double seconds) {
  Solution solution;
  solution.shape = plan_->delivered;
  solution.summary = std::move(system.solved);
  memory_.device.Release();
  upload_.FreeHostMatrix();
  engine_.events.OnSolve(slot_, solution.summary, factor, seconds);
  solution.x = MakeReplyData(std::move(out_), plan_->bytes.reply);
  return solution;
}

absl::StatusOr<Solution> SolveStep::Run(ExecutionContext& context, const Factorization& factor,
                                        StopRequested stop, CallTimings& timings,
                                        const Float64FactorFunction& make_float64_factor) {
  Solution solution;
  solution.shape = plan_->delivered;
  CROUT_ASSIGN_OR_RETURN(Buffer out, engine_.host_memory.Allocate(solution.shape.bytes()));
  CROUT_ASSIGN_OR_RETURN(Buffer rhs, upload_.Take(context, timings));
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(solution.summary, Solve(context, *plan_, factor, std::move(rhs),
                                                 out.data(), stop, kernel, make_float64_factor));
  timings.Add(kernel);
  memory_.device.Release();
  engine_.events.OnSolve(slot_, solution.summary, factor.summary, kernel.solve);
  solution.x = MakeReplyData(std::move(out), plan_->bytes.reply);
  return solution;
}

absl::StatusOr<std::unique_ptr<JobPlan<CachedSolution>>> PlanCachedSolve(
    Engine& engine, FactorCache::Pin pin, const MatrixSpec& rhs, const SolveRequest& request) {
  DeviceSlot& slot = pin.slot();
  if (pin.summary().kind() == FactorKind::kBatch) {
    auto solve = std::make_unique<CachedSolve<BatchSolveStep>>(std::move(pin));
    CROUT_ASSIGN_OR_RETURN(
        auto step, BatchSolveStep::Create(engine, rhs, request, "options", slot, solve->factor(),
                                          absl::StatusCode::kFailedPrecondition));
    solve->SetStep(std::move(step));
    return solve;
  }
  CROUT_RETURN_IF_ERROR(CheckSolvable(pin.summary()));
  if (rhs.batch_rhs) {
    return FieldError(absl::StatusCode::kFailedPrecondition, "rhs",
                      "the handle belongs to a single matrix: send one right-hand side, with any "
                      "number of columns");
  }
  auto solve = std::make_unique<MatrixSolve>(std::move(pin));
  CROUT_ASSIGN_OR_RETURN(auto step, SolveStep::Create(
                                        engine, rhs, request, "options", slot,
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
