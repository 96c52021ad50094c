// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/direct_solve_steps.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/engine/plan/options.h"

namespace crout {
namespace {

absl::Status CheckNeedsNoFactors(const FactorAndSolveRequest& request) {
  const FactorRequest& factor = request.factor;
  const SolveOptions& solve = request.solve.options;
  const std::pair<bool, const char*> option_uses[] = {
      {request.sets_cache, "cache"},
      {factor.equilibrate == EquilibrateMode::kOn, "options.equilibrate"},
      {factor.parameters.has_value(), "options.parameters"},
      {factor.pivot_threshold != 0, "options.pivot_threshold"},
      {factor.condition, "options.condition"},
      {factor.determinant, "options.determinant"},
      {solve.op != Op::kNone, "solve.operation"},
      {request.solve.names_solver(), "solve.solver"},
      {solve.solver_tolerance != 0, "solve.solver_tolerance"},
      {solve.componentwise_error, "solve.componentwise_error"},
      {solve.error_bound, "solve.error_bound"},
      {solve.max_refinement_steps != 0, "solve.max_refinement_steps"},
      {solve.refine_componentwise, "solve.refine_componentwise"},
  };
  for (const auto& [is_set, field] : option_uses) {
    if (is_set) {
      return BadField(field,
                      absl::StrCat("requires factors, but ", factor.algorithm,
                                   " produces none: leave it unset, or choose another algorithm"));
    }
  }
  return absl::OkStatus();
}

// Returns FAILED_PRECONDITION with the reason if there is no solution. Without a factor the growth
// is unknown. A zero pivot is therefore no proof that A is singular.
absl::Status CheckDirectlySolvable(const FactorSummary& summary) {
  if (summary.singular != SingularReason::kZeroPivot) return CheckSolvable(summary);
  return WithReason(absl::FailedPreconditionError(absl::StrCat(
                        summary.algorithm, " found no pivot in column ", summary.info,
                        " (1-based): the matrix is singular, or its elements grew too much. Solve "
                        "with algorithm 'getrf' to decide")),
                    kReasonSingular);
}

}  // namespace

bool DirectSolveSteps::IsRequested(const Engine& engine, const FactorRequest& request) {
  const auto& slots = engine.devices.slots();
  return std::any_of(slots.begin(), slots.end(), [&](const auto& slot) {
    return SolvesDirectly(*slot->device, request.algorithm);
  });
}

absl::StatusOr<MemoryNeed> DirectSolveSteps::PlanMatrix() {
  MatrixUpload& matrix = matrix_.upload();
  CROUT_RETURN_IF_ERROR(CheckSquare(matrix.shape(), matrix.field()));
  PackedMatrix none;
  none.rows = matrix.shape().rows;
  CROUT_ASSIGN_OR_RETURN(const DirectSolvePlan plan, PlanFor(none));
  return MemoryNeed{.device = plan.bytes.peak};
}

absl::StatusOr<MemoryNeed> DirectSolveSteps::PlanRhs() {
  const PackedMatrix& shape = rhs_.upload().shape();
  CROUT_RETURN_IF_ERROR(CheckRows(shape, MatrixShape().rows, rhs_.upload().field(),
                                  absl::StatusCode::kInvalidArgument));
  PackedMatrix none;
  none.rows = shape.rows;
  CROUT_ASSIGN_OR_RETURN(const DirectSolvePlan without, PlanFor(none));
  CROUT_ASSIGN_OR_RETURN(plan_, PlanFor(shape));
  const JobBytes& with = plan_->bytes;
  const size_t more = with.peak - std::min(with.peak, without.bytes.peak);
  return MemoryNeed{.device = more, .host = with.reply};
}

absl::StatusOr<std::unique_ptr<DirectSolveSteps>> DirectSolveSteps::Create(
    Engine& engine, const FactorAndSolveRequest& request, DeviceSlot& slot) {
  CROUT_RETURN_IF_ERROR(CheckNeedsNoFactors(request));
  CROUT_ASSIGN_OR_RETURN(const PayloadSpec matrix,
                         CheckPayload(request.matrix, "matrix", engine.limits, *slot.device));
  CROUT_ASSIGN_OR_RETURN(const PayloadSpec rhs,
                         CheckPayload(request.rhs, "rhs", engine.limits, *slot.device));
  CROUT_ASSIGN_OR_RETURN(const FactorizeOptions options,
                         OptionsFor(request.factor, matrix.shape.dtype));
  auto steps =
      std::unique_ptr<DirectSolveSteps>(new DirectSolveSteps(engine, slot, matrix, "matrix", rhs));
  CROUT_ASSIGN_OR_RETURN(
      steps->options_.solver,
      FindDirectSolver(*slot.device, request.factor.algorithm, options.factor_dtype));
  steps->options_.dtype = options.factor_dtype;
  steps->options_.verify = request.solve.options.verify;
  return steps;
}

PackedMatrix DirectSolveSteps::MatrixShape() {
  PackedMatrix shape = matrix_.upload().shape();
  const bool unread = matrix_.upload().needs_parsing() && shape.rows == 0;
  if (unread) shape.rows = shape.cols = rhs_.upload().shape().rows;
  return shape;
}

absl::StatusOr<DirectSolvePlan> DirectSolveSteps::PlanFor(const PackedMatrix& rhs) {
  return PlanDirectSolve(options_, MatrixShape(), rhs);
}

double DirectSolveSteps::PredictSeconds() {
  return options_.solver->PredictSeconds(options_.dtype, MatrixShape().rows,
                                         rhs_.upload().shape().cols);
}

FactorAndSolution DirectSolveSteps::EmptyResult() {
  FactorAndSolution result;
  result.has_factor = false;
  result.factor.slot = &slot_;
  result.factor.nnz = matrix_.upload().nnz();
  return result;
}

absl::StatusOr<std::optional<FactorAndSolution>> DirectSolveSteps::FindSingular() {
  const PackedMatrix& shape = matrix_.upload().shape();
  CROUT_RETURN_IF_ERROR(CheckSquare(shape, matrix_.upload().field()));
  CROUT_RETURN_IF_ERROR(
      CheckRows(rhs_.upload().shape(), shape.rows, "rhs", absl::StatusCode::kInvalidArgument));
  CROUT_ASSIGN_OR_RETURN(const std::optional<LeadingBlock> block,
                         matrix_.upload().InspectLeadingBlock(shape.rows));
  if (!block || (!block->empty_row && !block->empty_column)) {
    return std::optional<FactorAndSolution>();
  }
  FactorAndSolution result = EmptyResult();
  FactorSummary& summary = result.factor.factorization.summary;
  summary.algorithm = options_.solver->name();
  summary.n = summary.info = shape.rows;
  summary.factor_dtype = options_.dtype;
  summary.matrix_dtype = shape.dtype;
  summary.norm_one = block->norm_one;
  summary.norm_inf = block->norm_inf;
  summary.singular = block->empty_row ? SingularReason::kEmptyRow : SingularReason::kEmptyColumn;
  summary.empty_index = (block->empty_row ? *block->empty_row : *block->empty_column) + 1;
  result.unsolved = CheckDirectlySolvable(summary);
  return std::optional(std::move(result));
}

absl::StatusOr<FactorAndSolution> DirectSolveSteps::Run(ExecutionContext& context,
                                                        const JobControl& control,
                                                        CallTimings& timings) {
  // The plan assumed a matrix of the order of the right-hand side. The order in its text may
  // differ.
  CROUT_RETURN_IF_ERROR(CheckRows(rhs_.upload().shape(), matrix_.upload().shape().rows, "rhs",
                                  absl::StatusCode::kInvalidArgument));
  CROUT_ASSIGN_OR_RETURN(Buffer out, engine_.host_memory.Allocate(plan_->delivered.bytes()));
  CROUT_ASSIGN_OR_RETURN(Buffer matrix, matrix_.upload().Take(context, timings));
  CROUT_ASSIGN_OR_RETURN(Buffer rhs, rhs_.upload().Take(context, timings));
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(const DirectSolveSummary direct,
                         SolveDirectly(context, *plan_, std::move(matrix), std::move(rhs),
                                       out.data(), control.stop, kernel));
  timings.Add(kernel);
  FactorAndSolution result = EmptyResult();
  FactorSummary& summary = result.factor.factorization.summary;
  summary.algorithm = direct.solver;
  summary.n = direct.n;
  summary.factor_dtype = direct.dtype;
  summary.matrix_dtype = direct.matrix_dtype;
  summary.info = direct.info;
  if (direct.info > 0) summary.singular = SingularReason::kZeroPivot;
  summary.norm_one = direct.norm_one;
  summary.norm_inf = direct.norm_inf;
  engine_.events.OnFactor(slot_, summary, kernel.solve);
  if (direct.info > 0) {
    result.unsolved = CheckDirectlySolvable(summary);
    return result;
  }
  if (direct.backward_error) {
    engine_.events.OnBackwardError(direct.dtype, *direct.backward_error);
  }
  Solution& solution = result.solution.emplace();
  solution.shape = plan_->delivered;
  solution.x = std::make_shared<const ReplyData>(ReplyData{rhs_.TakeHost(), std::move(out)});
  solution.summary.solver = direct.solver;
  solution.summary.backward_error = direct.backward_error;
  solution.summary.accuracy_warnings = direct.accuracy_warnings;
  return result;
}

}  // namespace crout
