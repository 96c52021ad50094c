// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/sparse/sparse_retries.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/numerics/operands.h"
#include "kernels/numerics/pivot_growth.h"
#include "kernels/sparse/delayed_pivots.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// DelayPivots factors on one core of the host. This is the limit for its time, about ten seconds.
// Larger analyses postpone the pivots that failed, round by round.
constexpr double kMaxSearchFlops = 3e10;
// One search finds all delays, except for pivots that a low-precision factor rounds differently.
constexpr int kMaxSearches = 2;
// Longest predicted time of a replacement method after entries grew.
constexpr double kMaxRetrySeconds = 30;

// Returns true if entries grew by more than 1 / sqrt(u).
bool HasLargeGrowth(const NumericSummary& numeric, DType dtype) {
  return !(numeric.pivot_growth * std::sqrt(UnitRoundoff(dtype)) <= 1);
}

// Returns true if a solve with the factor had an error above u^(2/3) sqrt(n). Corrections of solves
// remove smaller errors in a few iterations. Large scales cause such errors without growth: the
// rounding errors of the scaled matrix are larger relative to the norm of A.
bool HasLargeError(const ProbedFactor& made, DType dtype) {
  return made.probe && !(made.probe->quality * std::cbrt(UnitRoundoff(dtype)) <= 1);
}

class Retries {
 public:
  Retries(SparseAttempt& attempt, const MatrixStats& stats, StopRequested stop)
      : attempt_(attempt), first_analysis_(attempt.plan().analysis), stats_(stats), stop_(stop) {}

  absl::StatusOr<ProbedFactor> Run();

 private:
  using MaybePlan = absl::StatusOr<std::optional<SparseFactorizePlan>>;

  // Factors by the current plan, then by analyses with delays while pivots are not acceptable.
  // Probes the last factor.
  absl::Status FactorWithDelays(ProbedFactor& made);
  // Sets made.probe if the factor is usable for solves.
  absl::Status Probe(ProbedFactor& made);

  // Each returns true if it changed the plan; the factor must then be made again.
  absl::StatusOr<bool> RescaleFor(const NumericSummary& made);
  absl::StatusOr<bool> DelayFailed(std::span<const int32_t> postponable);
  absl::StatusOr<bool> ReplaceIfAffordable(MaybePlan plan);

  // Each returns no plan if the retry does not apply.
  MaybePlan PlanRescaled();
  MaybePlan PlanDelayed(std::span<const int32_t> postponable);
  MaybePlan PlanUnmatched(const ProbedFactor& made);
  MaybePlan PlanOtherwise(const ProbedFactor& made);

  absl::Status TryAlternatives(ProbedFactor& made);
  // Factors by `other`. Unless that factor is better, restores the current plan and makes its
  // factor again.
  absl::Status Try(SparseFactorizePlan other, ProbedFactor& made);
  bool IsBetter(const ProbedFactor& other, const ProbedFactor& made) const;
  bool IsInaccurate(const ProbedFactor& made) const {
    const DType dtype = options().factor_dtype;
    return HasLargeGrowth(made.sparse.numeric, dtype) || HasLargeError(made, dtype);
  }
  // Returns true if another factor may be better: this factor is inaccurate, or the method ended at
  // a zero pivot and measures no growth.
  bool IsDoubtful(const ProbedFactor& made) const {
    return IsInaccurate(made) ||
           (made.sparse.numeric.info > 0 && !options().method.lu->ProvidesFronts());
  }
  absl::StatusOr<Analysis> PostponeOnce(const AnySparse& matrix,
                                        std::span<const int32_t> postponable);
  bool Searches() const { return analysis().flops <= kMaxSearchFlops; }

  const SparseFactorizeOptions& options() const { return attempt_.options(); }
  const Analysis& analysis() const { return attempt_.analysis(); }

  SparseAttempt& attempt_;
  const std::shared_ptr<const Analysis> first_analysis_;
  const MatrixStats stats_;
  const StopRequested stop_;
  bool may_rescale_ = true;
};

absl::StatusOr<bool> Retries::ReplaceIfAffordable(MaybePlan plan) {
  if (absl::IsResourceExhausted(plan.status())) return false;
  CROUT_RETURN_IF_ERROR(plan.status());
  if (!*plan) return false;
  CROUT_RETURN_IF_ERROR(attempt_.Replace(**std::move(plan)));
  return true;
}

Retries::MaybePlan Retries::PlanRescaled() {
  std::vector<std::byte> copy;
  CROUT_ASSIGN_OR_RETURN(const AnySparse matrix, attempt_.MatrixForAnalysis(copy));
  StopCounter counter(stop_);
  const bool suits = IsSuitableForValues(analysis(), matrix, options().factor_dtype, counter);
  CROUT_RETURN_IF_ERROR(counter.status());
  if (suits) return std::nullopt;
  CROUT_ASSIGN_OR_RETURN(std::optional<Analysis> rescaled,
                         Rescale(analysis(), matrix, attempt_.ClaimingOptions(), stop_));
  if (!rescaled) return std::nullopt;
  return attempt_.PlanFor(*std::move(rescaled));
}

absl::StatusOr<bool> Retries::RescaleFor(const NumericSummary& made) {
  const bool is_fine = made.info == 0 && made.perturbed_pivots == 0 &&
                       !HasLargeGrowth(made, options().factor_dtype) &&
                       SafeRangeOf(options().factor_dtype).contains(made.max_abs);
  const bool can = attempt_.can_grow() && attempt_.plan().analysis_reused &&
                   options().matching != MatchingMode::kOff &&
                   options().method.lu->AppliesScales() && analysis().kept == 0;
  if (is_fine || !can) return false;
  return ReplaceIfAffordable(PlanRescaled());
}

absl::StatusOr<Analysis> Retries::PostponeOnce(const AnySparse& matrix,
                                               std::span<const int32_t> postponable) {
  const MultifrontalLayout layout(analysis(), options().factor_dtype);
  const std::span<std::byte> factor = attempt_.Memory(attempt_.plan().factor);
  CROUT_ASSIGN_OR_RETURN(
      const std::vector<std::byte> pivots,
      attempt_.ToHost(factor.subspan(layout.pivots, matrix.n * sizeof(int32_t))));
  return Postpone(analysis(), matrix, postponable,
                  {reinterpret_cast<const int32_t*>(pivots.data()), static_cast<size_t>(matrix.n)},
                  attempt_.ClaimingOptions(), stop_);
}

Retries::MaybePlan Retries::PlanDelayed(std::span<const int32_t> postponable) {
  std::vector<std::byte> copy;
  CROUT_ASSIGN_OR_RETURN(const AnySparse matrix, attempt_.MatrixForAnalysis(copy));
  CROUT_ASSIGN_OR_RETURN(Analysis larger,
                         Searches() ? DelayPivots(analysis(), matrix, options().factor_dtype,
                                                  attempt_.ClaimingOptions(), stop_)
                                    : PostponeOnce(matrix, postponable));
  return attempt_.PlanFor(std::move(larger));
}

absl::StatusOr<bool> Retries::DelayFailed(std::span<const int32_t> postponable) {
  return ReplaceIfAffordable(PlanDelayed(postponable));
}

absl::Status Retries::Probe(ProbedFactor& made) {
  const NumericSummary& numeric = made.sparse.numeric;
  made.probe.reset();
  const bool is_whole = analysis().kept == 0;  // else no solve is possible
  if (numeric.info > 0 || !is_whole || !std::isfinite(numeric.pivot_growth)) {
    return absl::OkStatus();
  }
  const SparseFactorizePlan& plan = attempt_.plan();
  Factorization factor;
  factor.summary.n = analysis().n;
  factor.summary.factor_dtype = options().factor_dtype;
  factor.summary.matrix_dtype = plan.matrix_dtype;
  factor.summary.unit_diagonal = options().method.lu->traits().unit_diagonal;
  factor.summary.norm_one = stats_.norm_one;
  factor.summary.norm_inf = stats_.norm_inf;
  factor.summary.sparse = made.sparse;
  factor.summary.sparse->analysis = plan.analysis;
  // The solver borrows a Factorization, which owns its factor.
  factor.parts.Add(kLuPart, PartKind::kFactor, attempt_.Take(plan.factor));
  const absl::Status status = [&] {
    CROUT_ASSIGN_OR_RETURN(
        FactorSolver solver,
        FactorSolver::Create(attempt_.context(), factor, *options().method.solver, /*tolerance=*/0,
                             /*max_nrhs=*/1));
    const SparseOperand a(attempt_.Matrix(), stats_.norm_one, stats_.norm_inf);
    CROUT_ASSIGN_OR_RETURN(made.probe,
                           ProbeSparseFactor(attempt_.context(), a, solver, stats_.max_abs,
                                             attempt_.Memory(plan.vectors), factor.summary));
    return absl::OkStatus();
  }();
  attempt_.Give(plan.factor, factor.parts.Take(kLuPart));
  return status;
}

absl::Status Retries::FactorWithDelays(ProbedFactor& made) {
  SparseSummary& sparse = made.sparse;
  std::vector<int32_t> postponable;
  int delays = 0;
  for (bool again = true; again;) {
    CROUT_ASSIGN_OR_RETURN(sparse.numeric, attempt_.Factor(stop_, &postponable));
    sparse.flops += analysis().flops;
    if (std::exchange(may_rescale_, false)) {
      CROUT_ASSIGN_OR_RETURN(again, RescaleFor(sparse.numeric));
      if (again) continue;
    }
    // A factor that seems singular is tried too: only the perturbed matrix may be singular.
    const int most = Searches() ? kMaxSearches : kMaxPostponements;
    again =
        attempt_.can_grow() && !postponable.empty() && IsUnstable(sparse.numeric) && delays < most;
    if (!again) break;
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
    CROUT_ASSIGN_OR_RETURN(again, DelayFailed(postponable));
    delays += again;
  }
  sparse.postponements += delays;
  return Probe(made);
}

Retries::MaybePlan Retries::PlanUnmatched(const ProbedFactor& made) {
  const bool applies = IsInaccurate(made) && analysis().matched &&
                       options().matching == MatchingMode::kAuto &&
                       SafeRangeOf(options().factor_dtype).contains(stats_.max_abs);
  if (!applies) return std::nullopt;
  std::vector<std::byte> copy;
  CROUT_ASSIGN_OR_RETURN(const AnySparse matrix, attempt_.MatrixForAnalysis(copy));
  AnalysisOptions without = attempt_.ClaimingOptions();
  without.matching = MatchingMode::kOff;
  without.ordering_program = OrderingProgram();
  if (attempt_.on_host()) without.dissection_work = kHostDissectionWork;
  without.pivot_threshold = analysis().pivot_threshold;
  CROUT_ASSIGN_OR_RETURN(Analysis unmatched, Analyze(matrix, without, stop_));
  return attempt_.PlanFor(std::move(unmatched));
}

Retries::MaybePlan Retries::PlanOtherwise(const ProbedFactor&) {
  if (!options().otherwise) return std::nullopt;
  SparseFactorizeOptions other = options();
  other.method = *std::exchange(other.otherwise, std::nullopt);
  other.min_factor_bytes = 0;
  const double seconds = other.method.lu->PredictSeconds(*first_analysis_, other.factor_dtype);
  if (seconds > kMaxRetrySeconds) return std::nullopt;
  return attempt_.PlanWith(other, first_analysis_);
}

bool Retries::IsBetter(const ProbedFactor& other, const ProbedFactor& made) const {
  const DType dtype = options().factor_dtype;
  const NumericSummary& numeric = other.sparse.numeric;
  if (numeric.info > 0) return false;
  if (HasLargeGrowth(made.sparse.numeric, dtype)) {
    return numeric.pivot_growth < made.sparse.numeric.pivot_growth;
  }
  if (HasLargeGrowth(numeric, dtype)) return false;
  if (HasLargeError(made, dtype)) {
    return other.probe && other.probe->quality < made.probe->quality;
  }
  return numeric.perturbed_pivots == 0;
}

absl::Status Retries::Try(SparseFactorizePlan other, ProbedFactor& made) {
  SparseFactorizePlan before = attempt_.plan();
  ProbedFactor first = made;
  CROUT_RETURN_IF_ERROR(attempt_.Replace(std::move(other)));
  const absl::Status status = FactorWithDelays(made);
  if (status.ok() && IsBetter(made, first)) return absl::OkStatus();
  if (!status.ok() && !absl::IsResourceExhausted(status)) return status;
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
  CROUT_RETURN_IF_ERROR(attempt_.Replace(std::move(before)));
  std::vector<int32_t> postponable;
  CROUT_ASSIGN_OR_RETURN(first.sparse.numeric, attempt_.Factor(stop_, &postponable));
  first.sparse.flops = made.sparse.flops + analysis().flops;
  made = std::move(first);
  return absl::OkStatus();
}

absl::Status Retries::TryAlternatives(ProbedFactor& made) {
  for (const auto plan_other : {&Retries::PlanUnmatched, &Retries::PlanOtherwise}) {
    if (!attempt_.can_grow() || !IsDoubtful(made)) return absl::OkStatus();
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
    MaybePlan other = (this->*plan_other)(made);
    const bool can = !absl::IsResourceExhausted(other.status()) &&
                     !absl::IsFailedPrecondition(other.status());  // no ordering program
    if (!can) continue;
    CROUT_RETURN_IF_ERROR(other.status());
    if (*other) CROUT_RETURN_IF_ERROR(Try(**std::move(other), made));
  }
  return absl::OkStatus();
}

absl::StatusOr<ProbedFactor> Retries::Run() {
  ProbedFactor made;
  SparseSummary& sparse = made.sparse;
  sparse.reused = attempt_.plan().analysis_reused;
  CROUT_RETURN_IF_ERROR(FactorWithDelays(made));
  CROUT_RETURN_IF_ERROR(TryAlternatives(made));
  NumericSummary& numeric = sparse.numeric;
  // A zero matrix has infinite growth, which comes from the pivots that replaced its zeros.
  if (numeric.info > 0 && numeric.max_abs > 0 &&
      GrowthHidesSingularity(numeric.pivot_growth, options().factor_dtype)) {
    numeric.info = 0;
    numeric.singular_column = -1;
    CROUT_RETURN_IF_ERROR(Probe(made));
  }
  sparse.analysis = attempt_.plan().analysis;
  sparse.workspace = attempt_.plan().cached_workspace();
  return made;
}

}  // namespace

absl::StatusOr<ProbedFactor> FactorWithRetries(SparseAttempt& attempt, const MatrixStats& stats,
                                               StopRequested stop) {
  return Retries(attempt, stats, stop).Run();
}

}  // namespace crout
