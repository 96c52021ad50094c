#include "kernels/costs/series_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace crout {
namespace {

// As many serve any step that is to go on with the old factor.
constexpr int kMostIterations = 200;
// An attempt that may cost less tells nothing.
constexpr double kLeastCost = 4;
// What it may cost at least, and a fourth of it left, where predictions are all there is: those can
// be wrong by much.
constexpr double kLeastUnmeasured = 32;
// So much more than was thought makes an attempt that failed say nothing.
constexpr double kWrong = 1.5;
// Of what a factorization is worth: what seems to be left, the rest of the way, may be wrong.
constexpr double kMost = 2;
// Of the same, what iterations beyond those of the step that took least may cost. By 1 drift would
// be followed best; a factor that serves less well for a while, and then as before, is kept by
// more.
constexpr double kMostBeyond = 1.4;
// Of factorizations in a row, what trying the old factor once for all of them may cost.
constexpr double kShareOfTries = 0.02;
// Of the newest step in what a step takes lately.
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

bool SeriesModel::HasServed() const { return first_ >= 0 && std::isfinite(first_); }

bool SeriesModel::PaysToGoOn() const {
  double next = recent_;
  if (age_ == 0) next = first_;
  if (age_ > 0 && age_ <= kYoung && growth_ > 0) next = last_ + growth_;
  if (last_ > least_ + Worth()) return false;
  const double average = (Worth() + spent_) / static_cast<double>(age_ + 1);
  return next <= average || (age_ > kYoung && beyond_ < kMostBeyond * Worth());
}

SeriesBudget SeriesModel::Budget() const {
  SeriesBudget budget;
  budget.iterations = kMostIterations;
  budget.most_cost = std::max(kMost * Worth(), cost_.measured() ? kLeastCost : kLeastUnmeasured);
  budget.most_left = Worth();
  if (!cost_.measured()) budget.most_left = std::max(Worth(), kLeastUnmeasured / 4);
  budget.least = age_ > 0 ? last_iterations_ : HasServed() ? first_iterations_ : 0;
  if (first_ < 0) return budget;
  if (age_ > 0 || refactored_in_a_row_ < patience_) {
    return PaysToGoOn() ? budget : SeriesBudget();
  }
  if (HasServed()) {
    const double again = 2 * first_;
    budget.most_cost = std::max(budget.most_cost, again);
    budget.most_left = std::max(budget.most_left, again);
  }
  return budget;
}

void SeriesModel::MeasureCost(const SeriesTry& tried) {
  if (tried.cost > 0) cost_.Add(tried.seconds / tried.cost);
}

void SeriesModel::Reused(const SeriesTry& tried) {
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
  // None where the factor serves as well as ever.
  beyond_ = tried.cost > least_ ? beyond_ + tried.cost - least_ : 0;
  recent_ += (age_ == 1 ? 1 : kNewest) * (tried.cost - recent_);
  refactored_in_a_row_ = 0;
  if (PaysToGoOn()) {
    patience_ = kLeastPatience;
  } else if (age_ == 1) {
    patience_ = std::min(2 * patience_, kLongestPatience);
  }
}

void SeriesModel::Refactored(double seconds, const SeriesTry& tried) {
  const bool guessed = !cost_.measured();
  const double guess = Budget().most_left;
  MeasureCost(tried);
  factor_.Add(seconds);
  const bool was_wrong = guessed && Worth() > kWrong * guess;
  if (age_ > 0) {
    refactored_in_a_row_ = 0;
  } else if (tried.iterations == 0) {
    ++refactored_in_a_row_;
  } else {
    // It was tried, and did not get there in what it may cost. Where one has served before, this
    // one may be an exception.
    const bool exception = HasServed();
    first_ = std::numeric_limits<double>::infinity();
    const double cheap = std::ceil(tried.seconds / (kShareOfTries * factor_.seconds()));
    const int least =
        exception ? 1 : static_cast<int>(std::min<double>(cheap, kPatienceAfterFailure));
    patience_ = was_wrong ? kLeastPatience : std::clamp(2 * patience_, least, kLongestPatience);
    refactored_in_a_row_ = 0;
  }
  age_ = 0;
  spent_ = beyond_ = recent_ = 0;
  least_ = last_ = before_last_ = growth_ = 0;
}

}  // namespace crout
