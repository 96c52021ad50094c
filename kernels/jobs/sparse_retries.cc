// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/sparse_retries.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/numerics/pivot_growth.h"
#include "kernels/safe_range.h"
#include "kernels/sparse/delayed_pivots.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/stop_counter.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// DelayPivots factors on one core of the host. This is the limit for its time, about ten seconds.
// Larger analyses postpone the pivots that failed, round by round.
constexpr double kMaxSearchFlops = 3e10;
// One search finds all delays, except those that a low-precision factor rounds otherwise.
constexpr int kMaxSearches = 2;
// Longest predicted time of the method that replaces another one whose entries grew.
constexpr double kMaxRetrySeconds = 30;

// Whether entries grew by more than 1 / sqrt(u).
bool HasLargeGrowth(const NumericSummary& numeric, DType dtype) {
  return !(numeric.pivot_growth * std::sqrt(UnitRoundoff(dtype)) <= 1);
}

class Retries {
 public:
  Retries(SparseAttempt& attempt, double max_abs, StopRequested stop)
      : attempt_(attempt),
        first_analysis_(attempt.plan().analysis),
        max_abs_(max_abs),
        stop_(stop) {}

  absl::StatusOr<SparseSummary> Run();

 private:
  using MaybePlan = absl::StatusOr<std::optional<SparseFactorizePlan>>;

  // Factors by the current plan, then by analyses with delays while pivots are not acceptable.
  absl::Status FactorWithDelays(SparseSummary& sparse);

  // Return true after a change of the plan: the factor has to be made again.
  absl::StatusOr<bool> RescaleFor(const NumericSummary& made);
  absl::StatusOr<bool> DelayFailed(std::span<const int32_t> postponable);
  absl::StatusOr<bool> ReplaceIfAffordable(MaybePlan plan);

  // Return no plan if the retry does not apply.
  MaybePlan PlanRescaled();
  MaybePlan PlanDelayed(std::span<const int32_t> postponable);
  MaybePlan PlanUnmatched(const NumericSummary& made);
  MaybePlan PlanOtherwise(const NumericSummary& made);

  absl::Status TryAlternatives(SparseSummary& sparse);
  // Factors by `other`. Returns to the current plan, and makes its factor again, unless the other
  // factor is better.
  absl::Status Try(SparseFactorizePlan other, SparseSummary& sparse);
  bool IsBetter(const NumericSummary& other, const NumericSummary& made) const;
  // Whether another factor may be better: entries grew far, or the method ended at a zero pivot and
  // measures no growth.
  bool IsDoubtful(const NumericSummary& numeric) const {
    return HasLargeGrowth(numeric, options().factor_dtype) ||
           (numeric.info > 0 && !options().method.lu->ProvidesFronts());
  }
  absl::StatusOr<Analysis> PostponeOnce(const AnySparse& matrix,
                                        std::span<const int32_t> postponable);
  bool Searches() const { return analysis().flops <= kMaxSearchFlops; }

  const SparseFactorizeOptions& options() const { return attempt_.options(); }
  const Analysis& analysis() const { return attempt_.analysis(); }

  SparseAttempt& attempt_;
  const std::shared_ptr<const Analysis> first_analysis_;
  const double max_abs_;
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

absl::Status Retries::FactorWithDelays(SparseSummary& sparse) {
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
  return absl::OkStatus();
}

Retries::MaybePlan Retries::PlanUnmatched(const NumericSummary& made) {
  const bool applies = HasLargeGrowth(made, options().factor_dtype) && analysis().matched &&
                       options().matching == MatchingMode::kAuto &&
                       SafeRangeOf(options().factor_dtype).contains(max_abs_);
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

Retries::MaybePlan Retries::PlanOtherwise(const NumericSummary&) {
  if (!options().otherwise) return std::nullopt;
  SparseFactorizeOptions other = options();
  other.method = *std::exchange(other.otherwise, std::nullopt);
  other.min_factor_bytes = 0;
  const double seconds = other.method.lu->PredictSeconds(*first_analysis_, other.factor_dtype);
  if (seconds > kMaxRetrySeconds) return std::nullopt;
  return attempt_.PlanWith(other, first_analysis_);
}

bool Retries::IsBetter(const NumericSummary& other, const NumericSummary& made) const {
  if (other.info > 0) return false;
  if (HasLargeGrowth(made, options().factor_dtype)) return other.pivot_growth < made.pivot_growth;
  return other.perturbed_pivots == 0 && !HasLargeGrowth(other, options().factor_dtype);
}

absl::Status Retries::Try(SparseFactorizePlan other, SparseSummary& sparse) {
  SparseFactorizePlan before = attempt_.plan();
  SparseSummary made = sparse;
  CROUT_RETURN_IF_ERROR(attempt_.Replace(std::move(other)));
  const absl::Status status = FactorWithDelays(sparse);
  if (status.ok() && IsBetter(sparse.numeric, made.numeric)) return absl::OkStatus();
  if (!status.ok() && !absl::IsResourceExhausted(status)) return status;
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
  CROUT_RETURN_IF_ERROR(attempt_.Replace(std::move(before)));
  std::vector<int32_t> postponable;
  CROUT_ASSIGN_OR_RETURN(made.numeric, attempt_.Factor(stop_, &postponable));
  made.flops = sparse.flops + analysis().flops;
  sparse = std::move(made);
  return absl::OkStatus();
}

absl::Status Retries::TryAlternatives(SparseSummary& sparse) {
  for (const auto plan_other : {&Retries::PlanUnmatched, &Retries::PlanOtherwise}) {
    if (!attempt_.can_grow() || !IsDoubtful(sparse.numeric)) return absl::OkStatus();
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
    MaybePlan other = (this->*plan_other)(sparse.numeric);
    const bool can = !absl::IsResourceExhausted(other.status()) &&
                     !absl::IsFailedPrecondition(other.status());  // no ordering program
    if (!can) continue;
    CROUT_RETURN_IF_ERROR(other.status());
    if (*other) CROUT_RETURN_IF_ERROR(Try(**std::move(other), sparse));
  }
  return absl::OkStatus();
}

absl::StatusOr<SparseSummary> Retries::Run() {
  SparseSummary sparse;
  sparse.reused = attempt_.plan().analysis_reused;
  CROUT_RETURN_IF_ERROR(FactorWithDelays(sparse));
  CROUT_RETURN_IF_ERROR(TryAlternatives(sparse));
  NumericSummary& numeric = sparse.numeric;
  // A zero matrix has infinite growth, which comes from the pivots that replaced its zeros.
  if (numeric.info > 0 && numeric.max_abs > 0 &&
      GrowthHidesSingularity(numeric.pivot_growth, options().factor_dtype)) {
    numeric.info = 0;
    numeric.singular_column = -1;
  }
  sparse.analysis = attempt_.plan().analysis;
  sparse.workspace = attempt_.plan().cached_workspace();
  return sparse;
}

}  // namespace

absl::StatusOr<SparseSummary> FactorWithRetries(SparseAttempt& attempt, double max_abs,
                                                StopRequested stop) {
  return Retries(attempt, max_abs, stop).Run();
}

}  // namespace crout
