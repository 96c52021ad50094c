// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/factor_plan.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/error.h"
#include "server/engine/plan/batch_steps.h"
#include "server/engine/plan/direct_solve_steps.h"
#include "server/engine/plan/factor_step.h"
#include "server/engine/plan/values_step.h"

namespace crout {
namespace {

absl::Status CheckSameSizes(const BatchExtent& was, const BatchExtent& is) {
  if (was.dtype == is.dtype && was.members == is.members && was.max_rows == is.max_rows &&
      was.max_cols == is.max_cols && was.total_rows == is.total_rows &&
      was.total_cols == is.total_cols && was.bytes == is.bytes) {
    return absl::OkStatus();
  }
  return FieldError(
      absl::StatusCode::kFailedPrecondition, "matrix.batch",
      absl::StrCat("the handle's batch has ", was.members, " members and ", was.bytes,
                   " bytes, this one ", is.members, " and ", is.bytes,
                   ", or their types or largest sizes differ: factor it as a new batch"));
}

class MatrixFactorAndSolve final : public JobPlan<FactorAndSolution>,
                                   private BatchForm<FactorAndSolution> {
 public:
  static absl::StatusOr<std::unique_ptr<MatrixFactorAndSolve>> Create(
      Engine& engine, const FactorAndSolveRequest& request, const std::string& tenant);

  std::vector<PayloadStep*> steps() override { return {factor_.get(), solve_.get()}; }
  double PredictSeconds() override { return factor_->PredictSeconds() + solve_->PredictSeconds(); }
  int64_t columns() override { return factor_->upload().shape().rows; }
  BatchForm<FactorAndSolution>* batch_form() override {
    return factor_->batch_form() != nullptr ? this : nullptr;
  }
  absl::StatusOr<std::optional<FactorAndSolution>> FindSingular() override;
  absl::StatusOr<FactorAndSolution> Run(ExecutionContext& context, const JobControl& control,
                                        CallTimings& timings) override;

 private:
  DType batch_dtype() override { return factor_->upload().shape().dtype; }
  Op batch_op() override { return solve_->op(); }
  absl::Status AddToBatch(ExecutionContext& context, DynamicBatchSystem& system,
                          CallTimings& timings) override;
  absl::StatusOr<FactorAndSolution> ExtractFromBatch(DynamicBatchSystem& system,
                                                     const DynamicBatchTimings& batch,
                                                     CallTimings& timings) override;

  absl::Status CheckRhs() {
    return CheckRows(solve_->upload().shape(), factor_->upload().shape().rows, "rhs",
                     absl::StatusCode::kInvalidArgument);
  }
  // Returns the result for a factor that cannot solve systems.
  static FactorAndSolution Unsolved(NewFactor factor) {
    FactorAndSolution result;
    ShrinkToFactor(factor);
    result.factor = std::move(factor);
    result.unsolved = CheckSolvable(result.factor.factorization.summary);
    return result;
  }

  std::unique_ptr<FactorStep> factor_;
  std::unique_ptr<SolveStep> solve_;  // refers to factor_
};

absl::StatusOr<std::unique_ptr<MatrixFactorAndSolve>> MatrixFactorAndSolve::Create(
    Engine& engine, const FactorAndSolveRequest& request, const std::string& tenant) {
  auto plan = std::make_unique<MatrixFactorAndSolve>();
  CROUT_ASSIGN_OR_RETURN(
      plan->factor_,
      PlaceJob(engine, request.factor.device, request.factor.near,
               [&](DeviceSlot& slot) -> absl::StatusOr<std::unique_ptr<FactorStep>> {
                 CROUT_ASSIGN_OR_RETURN(
                     auto step, FactorStep::Create(engine, request.matrix, request.factor, slot,
                                                   request.sets_cache));
                 step->AllowSparse(tenant, request.solve.solver);
                 CROUT_RETURN_IF_ERROR(step->CheckKind());
                 if (step->CanBatch() &&
                     SolveStep::CanBatch(engine.limits, request.rhs, request.solve,
                                         step->upload().shape().dtype,
                                         /*any_size=*/request.factor.names_algorithm())) {
                   step->EnableBatching();
                 }
                 return step;
               }));
  FactorStep& factor = *plan->factor_;
  CROUT_ASSIGN_OR_RETURN(
      plan->solve_, SolveStep::Create(
                        engine, request.rhs, request.solve, "solve", factor.slot(),
                        [&factor] {
                          const FactorSummary expected = factor.Expected();
                          // A 0 x 0 matrix counts as kept: it has no bytes.
                          return ExpectedFactor{expected, factor.keeps_matrix() || expected.n == 0,
                                                factor.may_become_sparse()};
                        },
                        absl::StatusCode::kInvalidArgument));
  if (factor.batch_form() != nullptr) plan->solve_->EnableBatching();
  if (factor.upload().needs_parsing() && !plan->solve_->upload().needs_parsing()) {
    // B is admitted before the text of A has been read completely. Run() checks that A has the
    // expected order.
    CROUT_RETURN_IF_ERROR(factor.ExpectOrder(plan->solve_->upload().shape().rows));
  }
  return plan;
}

absl::Status MatrixFactorAndSolve::AddToBatch(ExecutionContext& context, DynamicBatchSystem& system,
                                              CallTimings& timings) {
  CROUT_RETURN_IF_ERROR(CheckRhs());
  CROUT_RETURN_IF_ERROR(factor_->AddToBatch(context, system, timings));
  return solve_->AddToBatch(system);
}

absl::StatusOr<FactorAndSolution> MatrixFactorAndSolve::ExtractFromBatch(
    DynamicBatchSystem& system, const DynamicBatchTimings& batch, CallTimings& timings) {
  timings.solve += batch.solve;
  FactorAndSolution result;
  CROUT_ASSIGN_OR_RETURN(static_cast<FactorResult&>(result),
                         factor_->ExtractFromBatch(system, batch, timings));
  if (result.factor.factorization.summary.info != 0) return Unsolved(std::move(result.factor));
  result.solution =
      solve_->ExtractFromBatch(system, result.factor.factorization.summary, batch.solve);
  return result;
}

absl::StatusOr<std::optional<FactorAndSolution>> MatrixFactorAndSolve::FindSingular() {
  CROUT_RETURN_IF_ERROR(CheckRhs());
  CROUT_ASSIGN_OR_RETURN(std::optional<FactorResult> found, factor_->FindSingular());
  if (!found) return std::optional<FactorAndSolution>();
  return std::optional(Unsolved(std::move(found->factor)));
}

absl::StatusOr<FactorAndSolution> MatrixFactorAndSolve::Run(ExecutionContext& context,
                                                            const JobControl& control,
                                                            CallTimings& timings) {
  CROUT_RETURN_IF_ERROR(CheckRhs());
  FactorAndSolution result;
  CROUT_ASSIGN_OR_RETURN(result.factor, factor_->Factor(context, control.stop_factoring, timings));
  const Factorization& factorization = result.factor.factorization;
  if (factorization.summary.info > 0) return Unsolved(std::move(result.factor));
  const Float64FactorFunction make_float64_factor = [&]() -> absl::StatusOr<const Factorization*> {
    CROUT_RETURN_IF_ERROR(
        factor_->RefactorInFloat64(context, control.stop_factoring, timings, result.factor));
    return &factorization;
  };
  if (factor_->changed()) CROUT_RETURN_IF_ERROR(solve_->Replan());
  const bool low = factorization.summary.precision != FactorPrecision::kFactorType;
  CROUT_ASSIGN_OR_RETURN(result.solution,
                         solve_->Run(context, factorization, control.stop, timings,
                                     low ? make_float64_factor : Float64FactorFunction()));
  ShrinkToFactor(result.factor);
  return result;
}

class BatchFactorAndSolve final : public JobPlan<FactorAndSolution> {
 public:
  static absl::StatusOr<std::unique_ptr<BatchFactorAndSolve>> Create(
      Engine& engine, const FactorAndSolveRequest& request);

  std::vector<PayloadStep*> steps() override { return {factor_.get(), solve_.get()}; }
  double PredictSeconds() override { return factor_->PredictSeconds() + solve_->PredictSeconds(); }
  absl::StatusOr<FactorAndSolution> Run(ExecutionContext& context, const JobControl& control,
                                        CallTimings& timings) override {
    FactorAndSolution result;
    CROUT_ASSIGN_OR_RETURN(static_cast<FactorResult&>(result),
                           factor_->Run(context, control, timings));
    CROUT_ASSIGN_OR_RETURN(
        result.solution, solve_->Run(context, result.factor.factorization, control.stop, timings));
    return result;
  }

 private:
  std::unique_ptr<BatchFactorStep> factor_;
  std::unique_ptr<BatchSolveStep> solve_;
};

absl::StatusOr<std::unique_ptr<BatchFactorAndSolve>> BatchFactorAndSolve::Create(
    Engine& engine, const FactorAndSolveRequest& request) {
  FactorRequest factor = request.factor;
  // The matrices of a batch that is neither cached nor verified are not needed.
  factor.keep_matrix &= request.sets_cache || request.solve.options.verify;
  auto plan = std::make_unique<BatchFactorAndSolve>();
  CROUT_ASSIGN_OR_RETURN(plan->factor_,
                         PlaceJob(engine, factor.device, factor.near, [&](DeviceSlot& slot) {
                           return BatchFactorStep::Create(engine, request.matrix, factor, slot);
                         }));
  BatchFactorStep& step = *plan->factor_;
  CROUT_ASSIGN_OR_RETURN(
      plan->solve_,
      BatchSolveStep::Create(engine, request.rhs, request.solve, "solve", step.slot(),
                             {.summary = step.Expected(), .has_matrix = step.keeps_matrix()},
                             absl::StatusCode::kInvalidArgument));
  return plan;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FactorPlan>> PlanFactor(Engine& engine, const MatrixSpec& matrix,
                                                       const FactorRequest& request,
                                                       const std::string& tenant) {
  return PlaceJob(engine, request.device, request.near,
                  [&](DeviceSlot& slot) -> absl::StatusOr<std::unique_ptr<FactorPlan>> {
                    if (matrix.batch) return BatchFactorStep::Create(engine, matrix, request, slot);
                    CROUT_ASSIGN_OR_RETURN(auto step, FactorStep::Create(engine, matrix, request,
                                                                         slot, /*cached=*/true));
                    step->AllowSparse(tenant);
                    if (step->CanBatch()) step->EnableBatching();
                    return step;
                  });
}

absl::StatusOr<std::unique_ptr<FactorPlan>> PlanRefactor(Engine& engine, const MatrixSpec& matrix,
                                                         const FactorRequest& request,
                                                         const std::string& tenant,
                                                         FactorCache::Pin& last) {
  CROUT_RETURN_IF_ERROR(CheckDeviceOf(request.device, last, "options.device"));
  const FactorSummary& summary = last.summary();
  if (matrix.batch.has_value() != summary.batch.has_value()) {
    return FieldError(absl::StatusCode::kFailedPrecondition, "matrix",
                      absl::StrCat("the handle belongs to ",
                                   summary.batch ? "a batch: send a batch of the same sizes"
                                                 : "a single matrix: send one matrix",
                                   ", or factor it under a new handle"));
  }
  if (matrix.batch) {
    CROUT_ASSIGN_OR_RETURN(auto step,
                           BatchFactorStep::Create(engine, matrix, request, last.slot()));
    CROUT_RETURN_IF_ERROR(CheckSameSizes(summary.batch->extent, step->extent()));
    return step;
  }
  if (matrix.values) return ValuesStep::Create(engine, matrix, request, last);
  CROUT_ASSIGN_OR_RETURN(auto step, FactorStep::Create(engine, matrix, request, last.slot(),
                                                       /*cached=*/true, &last));
  step->AllowSparse(tenant);
  return step;
}

absl::StatusOr<std::unique_ptr<JobPlan<FactorAndSolution>>> PlanFactorAndSolve(
    Engine& engine, const FactorAndSolveRequest& request, const std::string& tenant) {
  if (DirectSolveSteps::IsRequested(engine, request.factor)) {
    return PlaceJob(engine, request.factor.device, request.factor.near, [&](DeviceSlot& slot) {
      return DirectSolveSteps::Create(engine, request, slot);
    });
  }
  if (request.matrix.batch) return BatchFactorAndSolve::Create(engine, request);
  return MatrixFactorAndSolve::Create(engine, request, tenant);
}

}  // namespace crout
