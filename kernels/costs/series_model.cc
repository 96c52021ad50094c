#include "kernels/costs/series_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace crout {
namespace {

// As many serve any step that is to go on with the old factor.
constexpr int kMostIterations = 200;
// An attempt of fewer tells nothing; of as many, where predictions are all there is.
constexpr int kLeastIterations = 4;
constexpr int kLeastUnmeasured = 30;
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
    : factor_(factor_seconds), iteration_(iteration_seconds) {}

bool SeriesModel::HasServed() const {
  return first_ >= 0 && first_ < std::numeric_limits<int>::max();
}

bool SeriesModel::PaysToGoOn() const {
  double next = last_;
  if (age_ == 0) next = first_;
  if (age_ > 1) next += std::max(0, last_ - before_last_);
  if (age_ > kYoung) next = recent_;
  const double average = (Worth() + spent_) / static_cast<double>(age_ + 1);
  return next <= average || (age_ > kYoung && beyond_ < Worth());
}

int SeriesModel::Budget() const {
  const int least = iteration_.measured() ? kLeastIterations : kLeastUnmeasured;
  const int most = static_cast<int>(std::clamp<double>(std::ceil(Worth()), least, kMostIterations));
  if (first_ < 0) return most;
  if (age_ == 0 && refactored_in_a_row_ >= patience_) {
    return HasServed() ? std::max(most, std::min(2 * first_, kMostIterations)) : most;
  }
  return PaysToGoOn() ? most : 0;
}

void SeriesModel::MeasureIteration(int iterations, double seconds) {
  if (iterations > 0) iteration_.Add(seconds / iterations);
}

void SeriesModel::Reused(int iterations, double seconds) {
  MeasureIteration(iterations, seconds);
  if (age_ == 0) first_ = iterations;
  before_last_ = last_;
  last_ = iterations;
  spent_ += iterations;
  ++age_;
  if (age_ <= kYoung) {
    young_ += iterations;
  } else {
    beyond_ += iterations - young_ / kYoung;
  }
  recent_ += (age_ == 1 ? 1 : kNewest) * (iterations - recent_);
  refactored_in_a_row_ = 0;
  if (PaysToGoOn()) {
    patience_ = kLeastPatience;
  } else if (age_ == 1) {
    patience_ = std::min(2 * patience_, kLongestPatience);
  }
}

void SeriesModel::Refactored(double seconds, int iterations, double wasted_seconds) {
  MeasureIteration(iterations, wasted_seconds);
  factor_.Add(seconds);
  if (age_ > 0) {
    refactored_in_a_row_ = 0;
  } else if (iterations == 0) {
    ++refactored_in_a_row_;
  } else {
    // It was tried, and did not get there in what it may cost.
    first_ = std::numeric_limits<int>::max();
    patience_ = std::clamp(2 * patience_, kPatienceAfterFailure, kLongestPatience);
    refactored_in_a_row_ = 0;
  }
  age_ = 0;
  spent_ = young_ = beyond_ = recent_ = 0;
  last_ = before_last_ = 0;
}

}  // namespace crout
