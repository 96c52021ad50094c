// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/schur_step.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/engine/plan/options.h"
#include "server/engine/plan/singular_matrix.h"
#include "server/engine/plan/sparse_analysis.h"

namespace crout {
namespace {

// Refuses the header fields that do not apply when A is factored as a sparse matrix.
absl::Status CheckSparse(const SchurRequest& request) {
  if (!request.matrix.needs_parsing()) {
    return BadField("keep",
                    "the matrix is dense, and keep is for sparse matrices: send it as sparse, or "
                    "order it so that A11 leads and set leading_order in place of keep");
  }
  if (!request.keep.empty() && request.leading_order != 0) {
    return BadField("leading_order", "keep is also set: set only one of the two");
  }
  if (request.sets_cache) {
    return BadField("cache", "the factor of A11 of a sparse matrix is not cached: leave it unset");
  }
  const FactorRequest& options = request.factor;
  if (options.condition || options.determinant) {
    return BadField("options",
                    "condition and determinant require a factor of A11, which a sparse matrix does "
                    "not provide: leave them unset");
  }
  if (!options.keep_matrix) {
    return BadField("options.keep_matrix",
                    "this call does not cache a sparse matrix: leave it unset");
  }
  if (options.parameters) {
    return BadField("options.parameters", "sparse methods have no parameters: leave it unset");
  }
  if (options.equilibrate == EquilibrateMode::kOn) {
    return BadField("options.equilibrate",
                    "ON permutes columns, but the kept unknowns must not move: leave it unset");
  }
  if (request.solver != "auto") {
    return BadField("solver", "a sparse method uses its own solver: leave it unset");
  }
  return absl::OkStatus();
}

// Checks that each unknown is in [0, n) and occurs once.
absl::Status CheckKeepList(std::vector<int32_t> keep, int64_t n) {
  std::ranges::sort(keep);
  for (size_t i = 0; i < keep.size(); ++i) {
    if (keep[i] < 0 || keep[i] >= n) {
      return BadField("keep", absl::StrCat("unknown ", keep[i], " is not in [0, ", n,
                                           ") of a matrix of order ", n));
    }
    if (i > 0 && keep[i] == keep[i - 1]) {
      return BadField("keep",
                      absl::StrCat("unknown ", keep[i], " occurs twice: name each unknown once"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SchurStep>> SchurStep::Create(Engine& engine,
                                                             const SchurRequest& request,
                                                             DeviceSlot& slot) {
  CROUT_ASSIGN_OR_RETURN(const PayloadSpec spec,
                         CheckPayload(request.matrix, "matrix", engine.limits, *slot.device,
                                      PayloadRole::kMatrixAllowingSparse));
  auto step = std::unique_ptr<SchurStep>(new SchurStep(engine, spec, slot));
  step->request_ = request.factor;
  step->keep_ = request.keep;
  CROUT_RETURN_IF_ERROR(step->sparse_.ExtractMethodName(spec.needs_parsing(), &step->request_));
  CROUT_ASSIGN_OR_RETURN(step->options_.factor, OptionsFor(step->request_, spec.shape.dtype));
  if (step->sparse()) CROUT_RETURN_IF_ERROR(CheckSparse(request));
  CROUT_RETURN_IF_ERROR(step->sparse_.CheckType(step->ChoiceInput()));
  if (request.leading_order < 0)
    return BadField("leading_order",
                    absl::StrCat(request.leading_order, " is negative: send 0 or more"));
  const int64_t most = step->sparse() ? spec.max_order : engine.limits.max_n;
  if (request.leading_order > most) {
    return BadField("leading_order", absl::StrCat(request.leading_order, " is more than ", most,
                                                  ", the largest dimension of a matrix here"));
  }
  step->options_.leading = request.leading_order;
  step->options_.layout = spec.shape.layout;
  step->solver_ = request.solver;
  // Refuse a method that the device lacks before the payload arrives. The order of A is unknown
  // here.
  CROUT_RETURN_IF_ERROR(step->ResolveFor(request.leading_order));
  if (step->sparse() && step->request_.names_algorithm()) {
    return BadField("options.algorithm",
                    absl::StrCat(step->request_.algorithm,
                                 " factors dense matrices, but with keep A is factored as a "
                                 "sparse matrix: leave it unset, or name a sparse method"));
  }
  return step;
}

absl::Status SchurStep::ResolveFor(int64_t n) {
  const int64_t k = options_.leading;
  FactorizeOptions& factor = options_.factor;
  CROUT_RETURN_IF_ERROR(Resolve(request_, *slot_.device, k, &factor));
  factor.prepare = FindSolverToPrepare(*slot_.device, factor.algorithm->traits().unit_diagonal,
                                       factor.factor_dtype);
  CROUT_ASSIGN_OR_RETURN(
      options_.solver, FindSolver(*slot_.device, solver_, factor.algorithm->traits().unit_diagonal,
                                  factor.factor_dtype, k, n - k));
  return absl::OkStatus();
}

int64_t SchurStep::kept_count() {
  return keep_.empty() ? upload_.shape().rows - options_.leading : std::ssize(keep_);
}

std::vector<int32_t> SchurStep::KeptUnknowns() {
  if (!keep_.empty()) return keep_;
  std::vector<int32_t> behind(kept_count());
  std::iota(behind.begin(), behind.end(), static_cast<int32_t>(options_.leading));
  return behind;
}

absl::Status SchurStep::Analyze(StopRequested stop) {
  if (!sparse()) return absl::OkStatus();
  const PackedMatrix& shape = upload_.shape();
  CROUT_RETURN_IF_ERROR(CheckSquare(shape, upload_.field()));
  if (!upload_.nnz())
    return BadField("matrix",
                    "a dense array, and keep is for sparse matrices: send coordinates, or "
                    "set leading_order in place of keep");
  if (kept_count() < 1) {
    return BadField(
        "leading_order",
        absl::StrCat(options_.leading, ", but the matrix has order ", shape.rows,
                     " and is factored as a sparse matrix: the order must be less than that"));
  }
  CROUT_RETURN_IF_ERROR(CheckKeepList(keep_, shape.rows));
  CROUT_RETURN_IF_ERROR(CheckDimension(kept_count(), "keep", engine_.limits));
  sparse_.Allow(/*tenant=*/"");
  return sparse_.AnalyzeForSchur(upload_, KeptUnknowns(), ChoiceInput(), stop);
}

absl::StatusOr<MemoryNeed> SchurStep::Plan() {
  const PackedMatrix& shape = upload_.shape();
  CROUT_RETURN_IF_ERROR(CheckSquare(shape, upload_.field()));
  if (sparse()) {
    CROUT_ASSIGN_OR_RETURN(sparse_plan_, PlanSparseSchur(*sparse_.plan()));
    const JobBytes& bytes = sparse_plan_->bytes;
    return MemoryNeed{.device = FactorCache::Charge(bytes.peak),
                      .host = bytes.reply + bytes.report};
  }
  CROUT_RETURN_IF_ERROR(CheckDimension(shape.rows, upload_.field(), engine_.limits));
  if (options_.leading > shape.rows) {
    return BadField("leading_order",
                    absl::StrCat(options_.leading, ", but the matrix has order ", shape.rows));
  }
  CROUT_RETURN_IF_ERROR(ResolveFor(shape.rows));
  CROUT_ASSIGN_OR_RETURN(plan_, PlanSchur(options_, shape));
  const JobBytes& bytes = plan_->bytes;
  return MemoryNeed{.device = FactorCache::Charge(bytes.peak), .host = bytes.reply + bytes.report};
}

absl::StatusOr<std::optional<FactorAndComplement>> SchurStep::FindSingular() {
  CROUT_RETURN_IF_ERROR(Plan().status());                     // validates the matrix
  if (sparse()) return std::optional<FactorAndComplement>();  // the job reports singularity
  CROUT_ASSIGN_OR_RETURN(
      std::optional<NewFactor> factor,
      crout::FindSingular(engine_, slot_, upload_, options_.factor, options_.leading));
  if (!factor) return std::optional<FactorAndComplement>();
  FactorAndComplement result;
  result.factor = *std::move(factor);
  result.leading_order = options_.leading;
  return std::optional(std::move(result));
}

absl::StatusOr<FactorAndComplement> SchurStep::RunSparse(ExecutionContext& context,
                                                         const JobControl& control,
                                                         CallTimings& timings) {
  timings.analyze += sparse_.seconds();
  timings.queue -= sparse_.seconds();
  const PackedMatrix& s = sparse_plan_->complement;
  CROUT_ASSIGN_OR_RETURN(Buffer out, engine_.host_memory.Allocate(s.bytes()));
  CROUT_ASSIGN_OR_RETURN(Buffer matrix, upload_.Take(context, timings));
  KernelTimings kernel;
  ReservedGrowth growth(engine_, slot_, upload_.tenant(), sparse_.analysis(), memory_);
  CROUT_ASSIGN_OR_RETURN(SchurResult result,
                         ComputeSparseSchur(context, *sparse_plan_, std::move(matrix), out.data(),
                                            control.stop_factoring, kernel, &growth));
  return Finish(std::move(result), kernel, sparse_plan_->bytes, s,
                std::string(sparse_plan_->factor.options.method.solver->name()), std::move(out),
                timings);
}

absl::StatusOr<FactorAndComplement> SchurStep::Run(ExecutionContext& context,
                                                   const JobControl& control,
                                                   CallTimings& timings) {
  if (sparse_plan_) return RunSparse(context, control, timings);
  const PackedMatrix& s = plan_->complement;
  CROUT_ASSIGN_OR_RETURN(Buffer out, engine_.host_memory.Allocate(s.bytes()));
  CROUT_ASSIGN_OR_RETURN(Buffer matrix, upload_.Take(context, timings));
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(SchurResult result,
                         ComputeSchurComplement(context, *plan_, std::move(matrix), out.data(),
                                                control.stop_factoring, kernel));
  return Finish(std::move(result), kernel, plan_->bytes, s, std::string(options_.solver->name()),
                std::move(out), timings);
}

FactorAndComplement SchurStep::Finish(SchurResult result, const KernelTimings& kernel,
                                      const JobBytes& bytes, const PackedMatrix& shape,
                                      std::string solver, Buffer out, CallTimings& timings) {
  timings.Add(kernel);
  FactorAndComplement answer;
  answer.leading_order = columns();
  answer.keeps_factor = !sparse();
  NewFactor& factor = answer.factor;
  factor = MakeNewFactor(std::move(result.factor), kernel.factor);
  ShrinkToFactor(factor);
  factor.record = ExtractRecord(factor.factorization.summary, memory_.host.Split(bytes.report),
                                engine_.cache.OwnerOnHost(upload_.tenant(), ShareUse::kCache));
  factor.nnz = sparse() ? upload_.nnz() : std::nullopt;
  answer.complement = {shape, MakeReplyData(std::move(out), bytes.reply), std::move(solver),
                       result.complement};
  return answer;
}

}  // namespace crout
