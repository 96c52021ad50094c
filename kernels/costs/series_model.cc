#include "kernels/costs/series_model.h"

#include <algorithm>
#include <cmath>

namespace crout {
namespace {

// As many serve any step that is to go on with the old factor.
constexpr int kMostIterations = 200;
// An attempt of fewer tells nothing.
constexpr int kLeastIterations = 3;

}  // namespace

SeriesModel::SeriesModel(double factor_seconds, double iteration_seconds)
    : factor_seconds_(factor_seconds), iteration_seconds_(iteration_seconds) {}

double SeriesModel::PredictReuse() const {
  if (age_ == 0) return first_;
  if (age_ == 1) return last_;
  return last_ + std::max(0.0, last_ - before_last_);
}

double SeriesModel::AverageSoFar() const { return cycle_seconds_ / static_cast<double>(age_ + 1); }

int SeriesModel::Budget() const {
  const double affordable = std::ceil(factor_seconds_ / iteration_seconds_);
  const int most =
      static_cast<int>(std::clamp<double>(affordable, kLeastIterations, kMostIterations));
  const double predicted = PredictReuse();
  if (predicted < 0) return most;
  if (age_ == 0 && refactored_in_a_row_ >= try_again_after_) return most;
  return predicted <= AverageSoFar() ? most : 0;
}

void SeriesModel::MeasureIteration(int iterations, double seconds) {
  if (iterations < 1 || !(seconds > 0)) return;
  // The newest counts for half: a shared device is not always as fast.
  iteration_seconds_ = (iteration_seconds_ + seconds / iterations) / 2;
}

void SeriesModel::Reused(int iterations, double seconds) {
  MeasureIteration(iterations, seconds);
  before_last_ = last_;
  last_ = seconds;
  if (age_ == 0) first_ = seconds;
  ++age_;
  cycle_seconds_ += seconds;
  refactored_in_a_row_ = 0;
  try_again_after_ = kFirstPatience;
}

void SeriesModel::Refactored(double seconds, int iterations, double wasted_seconds) {
  MeasureIteration(iterations, wasted_seconds);
  if (seconds > 0) factor_seconds_ = seconds;
  if (age_ == 0) {
    if (iterations > 0) {
      // It was tried, and did not get there in what it may cost.
      first_ = 2 * std::max(factor_seconds_, wasted_seconds);
      if (refactored_in_a_row_ >= try_again_after_) {
        try_again_after_ = std::min(2 * try_again_after_, kLongestPatience);
      }
      refactored_in_a_row_ = 0;
    } else {
      ++refactored_in_a_row_;
    }
  } else {
    refactored_in_a_row_ = 0;
  }
  age_ = 0;
  last_ = before_last_ = 0;
  cycle_seconds_ = factor_seconds_;
}

}  // namespace crout
