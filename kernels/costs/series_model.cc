// SPDX-License-Identifier: Apache-2.0

#include "kernels/costs/series_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace crout {
namespace {

// Iteration limit of a step that continues with the old factor.
constexpr int kMaxIterations = 200;
// Lower bound of the cost limit. A cheaper attempt is not informative.
constexpr double kMinCost = 4;
// Lower bound of the cost limit while only predictions exist, which can be far off. A quarter of it
// is the lower bound of the limit on the remaining cost.
constexpr double kMinUnmeasuredCost = 32;
// A failed attempt is inconclusive if a factorization turns out to be worth this many times the
// predicted cost.
constexpr double kMaxPredictionError = 1.5;
// Cost limit of a step, in factorizations. Above 1, because the estimate of the remaining cost can
// be wrong.
constexpr double kMax = 2;
// Limit, in factorizations, of the accumulated cost beyond the cheapest step. 1 would follow drift
// best; a larger value keeps a factor that serves worse only for a while.
constexpr double kMaxExcessCost = 1.4;
// Fraction of the time of consecutive factorizations that one attempt with the old factor may take.
constexpr double kTryTimeFraction = 0.02;
// Weight of the newest step in the moving average.
constexpr double kNewest = 0.5;

}  // namespace

void RecentSeconds::Add(double seconds) {
  if (!(seconds > 0)) return;
  last_[count_ % last_.size()] = seconds;
  ++count_;
  seconds_ = *std::min_element(last_.begin(), last_.end());
}

SeriesModel::SeriesModel(double factor_seconds, double iteration_seconds)
    : factor_(factor_seconds), cost_(iteration_seconds) {}

bool SeriesModel::LastReuseSucceeded() const { return first_ >= 0 && std::isfinite(first_); }

bool SeriesModel::IsReuseCheaper() const {
  double next = recent_;
  if (age_ == 0) next = first_;
  if (age_ > 0 && age_ <= kYoungAge && growth_ > 0) next = last_ + growth_;
  if (last_ > least_ + FactorizationCost()) return false;
  const double average = (FactorizationCost() + spent_) / static_cast<double>(age_ + 1);
  return next <= average || (age_ > kYoungAge && beyond_ < kMaxExcessCost * FactorizationCost());
}

SeriesBudget SeriesModel::Budget() const {
  SeriesBudget budget;
  budget.iterations = kMaxIterations;
  budget.max_cost =
      std::max(kMax * FactorizationCost(), cost_.measured() ? kMinCost : kMinUnmeasuredCost);
  budget.max_remaining = FactorizationCost();
  if (!cost_.measured())
    budget.max_remaining = std::max(FactorizationCost(), kMinUnmeasuredCost / 4);
  budget.least = age_ > 0 ? last_iterations_ : LastReuseSucceeded() ? first_iterations_ : 0;
  if (first_ < 0) return budget;
  if (age_ > 0 || refactored_in_a_row_ < patience_) {
    return IsReuseCheaper() ? budget : SeriesBudget();
  }
  if (LastReuseSucceeded()) {
    const double again = 2 * first_;
    budget.max_cost = std::max(budget.max_cost, again);
    budget.max_remaining = std::max(budget.max_remaining, again);
  }
  return budget;
}

void SeriesModel::MeasureCost(const SeriesAttempt& tried) {
  if (tried.cost > 0) cost_.Add(tried.seconds / tried.cost);
}

void SeriesModel::RecordReuse(const SeriesAttempt& tried) {
  MeasureCost(tried);
  if (age_ == 0) {
    first_ = tried.cost;
    first_iterations_ = tried.iterations;
  }
  growth_ = std::min(tried.cost - last_, last_ - before_last_);
  before_last_ = last_;
  last_ = tried.cost;
  last_iterations_ = tried.iterations;
  spent_ += tried.cost;
  ++age_;
  least_ = age_ == 1 ? tried.cost : std::min(least_, tried.cost);
  // Reset when the factor serves as well as ever.
  beyond_ = tried.cost > least_ ? beyond_ + tried.cost - least_ : 0;
  recent_ += (age_ == 1 ? 1 : kNewest) * (tried.cost - recent_);
  refactored_in_a_row_ = 0;
  if (IsReuseCheaper()) {
    patience_ = kMinPatience;
  } else if (age_ == 1) {
    patience_ = std::min(2 * patience_, kMaxPatience);
  }
}

void SeriesModel::RecordRefactorization(double seconds, const SeriesAttempt& tried) {
  const bool guessed = !cost_.measured();
  const double guess = Budget().max_remaining;
  MeasureCost(tried);
  factor_.Add(seconds);
  const bool was_wrong = guessed && FactorizationCost() > kMaxPredictionError * guess;
  if (age_ > 0) {
    refactored_in_a_row_ = 0;
  } else if (tried.iterations == 0) {
    ++refactored_in_a_row_;
  } else {
    // The attempt did not converge within its limit. If a factor has served before, this failure
    // may be an exception.
    const bool exception = LastReuseSucceeded();
    first_ = std::numeric_limits<double>::infinity();
    const double cheap = std::ceil(tried.seconds / (kTryTimeFraction * factor_.seconds()));
    const int least =
        exception ? 1 : static_cast<int>(std::min<double>(cheap, kPatienceAfterFailure));
    patience_ = was_wrong ? kMinPatience : std::clamp(2 * patience_, least, kMaxPatience);
    refactored_in_a_row_ = 0;
  }
  age_ = 0;
  spent_ = beyond_ = recent_ = 0;
  least_ = last_ = before_last_ = growth_ = 0;
}

}  // namespace crout
