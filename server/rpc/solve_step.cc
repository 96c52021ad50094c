// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/solve_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/algorithm_registry.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/solve.h"
#include "kernels/util/status_macros.h"
#include "server/engine/reason.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/codec/status.h"

namespace crout {

namespace {

// Limit on the corrections of a solve. On every device, a float64 factorization costs less.
constexpr int kMaxCorrections = 100;

// Refinement steps that reduce the error of a solution by a sparse factor to roundoff.
constexpr int kSparseRefinement = 2;

}  // namespace

absl::Status CheckSolvable(const FactorSummary& factor) {
  const absl::Status usable = CheckUsable(factor);
  return usable.ok() ? usable : WithReason(usable, kReasonSingular);
}

v1::SolveResult Encode(const Solution& solution, int64_t factor_version,
                       const std::string& device) {
  const SolveSummary& summary = solution.summary;
  v1::SolveResult result;
  if (summary.backward_error) result.set_backward_error(*summary.backward_error);
  if (summary.componentwise_error) result.set_componentwise_error(*summary.componentwise_error);
  if (summary.forward_error_bound) result.set_forward_error_bound(*summary.forward_error_bound);
  result.set_refinement_steps(summary.refinement_steps);
  if (summary.corrections) result.set_corrections(*summary.corrections);
  AddWarnings(summary.accuracy_warnings, result.mutable_warnings());
  result.set_solver(SolverFromName(summary.solver));
  result.set_fallback(ToProto(summary.fallback));
  result.set_factor_version(factor_version);
  result.set_nrhs(solution.shape.cols);
  result.set_device(device);
  return result;
}

absl::StatusOr<std::unique_ptr<SolveStep>> SolveStep::Create(
    ServerCore& core, const v1::MatrixSpec& rhs, const v1::SolveOptions& options,
    absl::string_view field, DeviceSlot& slot, std::function<ExpectedFactor()> expected,
    absl::StatusCode mismatch) {
  CROUT_ASSIGN_OR_RETURN(
      const PayloadSpec spec,
      DecodePayload(rhs, "header.rhs", core.limits, *slot.device, PayloadRole::kRightHandSide));
  auto step = std::unique_ptr<SolveStep>(new SolveStep(core, spec, slot));
  CROUT_ASSIGN_OR_RETURN(step->options_, DecodeOptions(options, field));
  step->field_ = std::string(field);
  step->solver_ = SolverName(options.solver());
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
    return core_.cache.ReserveOnDevice(slot_, bytes);
  }));
  return reserve(need.host, memory_.host,
                 [&](size_t bytes) { return core_.cache.ReserveOnHost(bytes); });
}

absl::StatusOr<MemoryNeed> SolveStep::Plan() {
  const auto [factor, has_matrix, undecided] = expected_();
  const PackedMatrix& shape = upload_.shape();
  CROUT_RETURN_IF_ERROR(CheckRows(shape, factor.n, upload_.field(), mismatch_));
  // The requested solver may accept only sparse factors. Use "auto" until the matrix is analyzed.
  provisional_ = undecided;
  CROUT_ASSIGN_OR_RETURN(
      options_.solver, FindSolver(*slot_.device, undecided ? "auto" : solver_, factor, shape.cols));
  if (options_.solver->needs_preparation()) {
    CROUT_ASSIGN_OR_RETURN(options_.fallback,
                           FindSolver(*slot_.device, "auto", factor.unit_diagonal,
                                      factor.factor_dtype, factor.n, shape.cols));
  }
  const absl::Status taken = CheckTolerance(*options_.solver, options_.solver_tolerance);
  if (!taken.ok()) return BadField(absl::StrCat(field_, ".solver_tolerance"), taken.message());
  SolveOptions options = options_;
  options.verify &= has_matrix;
  if (factor.precision != FactorPrecision::kFactorType) options.max_corrections = kMaxCorrections;
  if (factor.sparse && has_matrix) {
    // Refinement alone may not converge with an inaccurate factor: after perturbed pivots, large
    // growth of the entries, or a solve of the probe with a large error.
    if (IsUnstable(factor.sparse->numeric) || factor.is_poor()) {
      options.max_corrections = kMaxCorrections;
    } else {
      options.max_refinement_steps = std::max(options.max_refinement_steps, kSparseRefinement);
    }
  }
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

bool SolveStep::CanBatch(const Limits& limits, const v1::MatrixSpec& rhs,
                         const v1::SolveOptions& options, DType dtype, bool any_size) {
  if (!rhs.has_dense() || rhs.dense().rows() < 1 || rhs.dense().cols() < 1) return false;
  const v1::Dtype requested = rhs.dense().dtype();
  const bool same_type = requested == ToProto(dtype) ||
                         (requested == v1::DTYPE_UNSPECIFIED && dtype == DType::kFloat64);
  const bool by_default =
      options.solver() == v1::SOLVER_UNSPECIFIED || options.solver() == v1::SOLVER_AUTO;
  return same_type && by_default && (any_size || rhs.dense().cols() <= limits.gather_max_order) &&
         options.solver_tolerance() == 0 && options.max_refinement_steps() == 0 &&
         !options.error_bound() && !options.componentwise_error() &&
         !options.refine_componentwise();
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
  CROUT_ASSIGN_OR_RETURN(out_, core_.host_memory.Allocate(plan_->delivered.bytes()));
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
  Observe(solution.summary, factor, seconds);
  solution.x = MakeReplyData(std::move(out_), plan_->bytes.reply);
  return solution;
}

void SolveStep::Observe(const SolveSummary& summary, const FactorSummary& factor, double seconds) {
  core_.metrics.device(static_cast<size_t>(slot_.index))
      .ObserveSolve(summary.solver, factor.factor_dtype, factor.n, seconds);
  if (summary.backward_error) {
    core_.metrics.ObserveBackwardError(factor.factor_dtype, *summary.backward_error);
  }
  core_.metrics.CountSolverFallback(summary.fallback);
}

absl::StatusOr<Solution> SolveStep::Run(ExecutionContext& context, const Factorization& factor,
                                        StopRequested stop, CallTimings& timings,
                                        const Float64FactorFunction& make_float64_factor) {
  Solution solution;
  solution.shape = plan_->delivered;
  CROUT_ASSIGN_OR_RETURN(Buffer out, core_.host_memory.Allocate(solution.shape.bytes()));
  CROUT_ASSIGN_OR_RETURN(Buffer rhs, upload_.Take(context, timings));
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(solution.summary, Solve(context, *plan_, factor, std::move(rhs),
                                                 out.data(), stop, kernel, make_float64_factor));
  timings.Add(kernel);
  memory_.device.Release();
  Observe(solution.summary, factor.summary, kernel.solve);
  solution.x = MakeReplyData(std::move(out), plan_->bytes.reply);
  return solution;
}

}  // namespace crout
