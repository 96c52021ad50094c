// The series' model against the best that can be done knowing all costs: seconds are the test's.
#include "kernels/costs/series_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "gtest/gtest.h"

namespace crout {
namespace {

constexpr double kFactor = 40;  // seconds of a factorization
constexpr int kSteps = 400;

// Iterations, of a second each, that a step takes with a factor that is `age` steps old, in step
// number `step`.
using Iterations = std::function<int(int age, int step)>;

double SecondsOfModel(const Iterations& iterations) {
  SeriesModel model(/*factor_seconds=*/10, /*iteration_seconds=*/0.1);  // wrong at first
  double sum = 0;
  int age = 0;
  model.Refactored(kFactor, 0, 0);
  for (int step = 1; step < kSteps; ++step) {
    const int needed = iterations(age + 1, step);
    const int budget = model.Budget();
    if (needed <= budget) {
      model.Reused(needed, needed);
      sum += needed;
      ++age;
    } else {
      model.Refactored(kFactor, budget, budget);
      sum += budget + kFactor;
      age = 0;
    }
  }
  return sum;
}

// By the best period; 1: a factorization each step.
double SecondsOfBestPeriod(const Iterations& iterations) {
  double best = std::numeric_limits<double>::infinity();
  for (int period = 1; period <= kSteps; ++period) {
    double sum = 0;
    for (int step = 1; step < kSteps; ++step) {
      const int age = step % period;
      sum += age == 0 ? kFactor : iterations(age, step);
    }
    best = std::min(best, sum);
  }
  return best;
}

TEST(SeriesModelTest, IsNearlyAsGoodAsTheBestPeriod) {
  const struct {
    const char* name;
    Iterations iterations;
  } kCases[] = {
      {"a factor that serves for ever", [](int, int) { return 3; }},
      {"a factor that serves, more or less", [](int, int step) { return 3 + step % 3; }},
      {"soon as far as it gets", [](int age, int) { return age < 4 ? 2 : 3; }},
      {"slow drift", [](int age, int) { return 3 + age / 4; }},
      {"drift", [](int age, int) { return 4 + 2 * age; }},
      {"fast drift", [](int age, int) { return 12 * age; }},
      {"as a square root", [](int age, int) { return static_cast<int>(8 * std::sqrt(age)); }},
      {"too far at once", [](int, int) { return 60; }},
      {"never", [](int, int) { return 100000; }},
  };
  for (const auto& [name, iterations] : kCases) {
    EXPECT_LE(SecondsOfModel(iterations), 1.1 * SecondsOfBestPeriod(iterations)) << name;
  }
}

TEST(SeriesModelTest, AJumpCostsAtMostAFactorizationMore) {
  const Iterations calm = [](int, int) { return 3; };
  const Iterations jumps = [](int age, int step) {
    // After steps 50 and 120 no older factor serves.
    for (const int jump : {50, 120}) {
      if (step >= jump && step - age < jump) return 100000;
    }
    return 3;
  };
  EXPECT_LE(SecondsOfModel(jumps), SecondsOfModel(calm) + 2 * 2.5 * kFactor);
}

// A machine that does other things too lets a step wait now and then.
TEST(SeriesModelTest, StepsThatHadToWaitDecideNothing) {
  constexpr double kWaited = 60;  // times as long
  for (const int every : {4, 7, kSteps}) {
    SeriesModel model(10, 0.1);
    model.Refactored(kFactor, 0, 0);
    int factorizations = 0;
    for (int step = 1; step < kSteps; ++step) {
      const double seconds = step % every == 1 ? kWaited : 1;  // of an iteration
      constexpr int kNeeded = 12;
      if (kNeeded <= model.Budget()) {
        model.Reused(kNeeded, kNeeded * seconds);
      } else {
        model.Refactored(kFactor * seconds, 0, 0);
        ++factorizations;
      }
    }
    EXPECT_LE(factorizations, kSteps / 40) << "every step number " << every;
  }
}

TEST(SeriesModelTest, TriesTheOldFactorAgainWhenTheSeriesHasCalmed) {
  const Iterations calms = [](int, int step) { return step < 60 ? 100000 : 3; };
  const Iterations calm = [](int, int) { return 3; };
  EXPECT_LE(SecondsOfModel(calms), SecondsOfModel(calm) + (60 + 64) * kFactor);
}

TEST(SeriesModelTest, SecondsThatWereNotMeasuredAreLeftOut) {
  SeriesModel model(2, 0.5);
  model.Refactored(0, 0, 0);
  EXPECT_EQ(model.factor_seconds(), 2);
  model.Reused(0, 0);  // solved already
  EXPECT_EQ(model.iteration_seconds(), 0.5);
  EXPECT_EQ(model.age(), 1);
  EXPECT_GT(model.Budget(), 0);
}

}  // namespace
}  // namespace crout
