// SPDX-License-Identifier: Apache-2.0

// Tests the model of a series against the best choice if all costs were known in advance. The test
// supplies the times.
#include "kernels/costs/series_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace crout::series_model_test {
namespace {

constexpr double kFactor = 40;  // seconds of a factorization
constexpr int kSteps = 400;

// Returns the iterations that step number `step` needs with a factor that is `age` steps old. Each
// takes a second.
using Iterations = std::function<int(int age, int step)>;

// Returns the iterations executed in a step that needs `needed`. After `seen` iterations, the step
// is abandoned if too many are left.
int SpentOf(int needed, const SeriesBudget& budget, int seen = 2) {
  seen = std::max(seen, budget.least);
  const int most = static_cast<int>(std::min<double>(budget.iterations, budget.max_cost));
  return std::min(needed - seen > budget.max_remaining ? seen : needed, most);
}

// An attempt whose iterations cost 1 each.
SeriesAttempt Tried(int iterations, double seconds) {
  return {iterations, static_cast<double>(iterations), seconds};
}

double SecondsOfModel(const Iterations& iterations) {
  SeriesModel model(/*factor_seconds=*/10, /*iteration_seconds=*/0.1);  // wrong predictions
  double sum = 0;
  int age = 0;
  model.RecordRefactorization(kFactor, {});
  for (int step = 1; step < kSteps; ++step) {
    const int needed = iterations(age + 1, step);
    const int spent = SpentOf(needed, model.Budget());
    sum += spent;
    if (spent == needed) {
      model.RecordReuse(Tried(needed, needed));
      ++age;
    } else {
      model.RecordRefactorization(kFactor, Tried(spent, spent));
      sum += kFactor;
      age = 0;
    }
  }
  return sum;
}

// Returns the seconds with the best period. Period 1 factors in each step.
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

TEST(SeriesModelTest, CostsLittleMoreThanTheBestPeriod) {
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
      {"here and there",
       [](int age, int step) { return (step - age) / 4 % 2 == step / 4 % 2 ? 3 : 12; }},
      {"too far at once", [](int, int) { return 60; }},
      {"never", [](int, int) { return 100000; }},
  };
  for (const auto& [name, iterations] : kCases) {
    EXPECT_LE(SecondsOfModel(iterations), 1.1 * SecondsOfBestPeriod(iterations)) << name;
  }
}

// Recorded iterations of a real series. Row t lists the iterations of step t + 1 with the factor of
// each previous step, the first factor first. The times, in seconds, are those of a GPU for this
// order: per factorization, per iteration and per step.
struct Recorded {
  const char* name;
  std::vector<std::vector<int>> iterations;
  double factor, iteration, step;
  int seen;  // iterations after which the remaining ones can be estimated

  double Reused(int count) const { return step + count * iteration; }
};

const Recorded kRecorded[] = {
    {"power flow by the hour",
     {{7},
      {7, 7},
      {7, 7, 6},
      {7, 7, 5, 5},
      {7, 7, 5, 5, 4},
      {7, 7, 5, 5, 5, 5},
      {6, 7, 6, 6, 5, 5, 5},
      {6, 6, 6, 6, 6, 6, 5, 5},
      {6, 7, 6, 6, 6, 6, 6, 6, 5},
      {6, 7, 7, 7, 7, 7, 7, 6, 6, 5},
      {6, 7, 7, 7, 7, 7, 7, 6, 6, 6, 5},
      {6, 7, 7, 7, 7, 7, 7, 6, 6, 5, 5, 5},
      {6, 7, 7, 7, 7, 7, 7, 6, 6, 5, 5, 5, 5},
      {6, 7, 7, 7, 7, 7, 7, 6, 6, 6, 5, 5, 5, 5},
      {6, 7, 7, 7, 7, 7, 6, 6, 6, 6, 5, 5, 5, 5, 5},
      {6, 7, 7, 7, 7, 7, 6, 6, 6, 6, 5, 5, 5, 5, 5, 5}},
     0.85e-3,
     0.155e-3,
     0.05e-3,
     2},
    {"power flow by Newton's method", {{12}, {13, 8}, {15, 9, 5}}, 0.72e-3, 0.15e-3, 0.03e-3, 1},
};

TEST(SeriesModelTest, CostsLittleInShortRealSeries) {
  for (const Recorded& recorded : kRecorded) {
    SeriesModel model(recorded.factor / 2, recorded.iteration / 2);  // wrong predictions
    model.RecordRefactorization(recorded.factor, {});
    double by_model = 0, refactor = 0, reuse = 0;
    size_t factored = 0;
    for (size_t step = 0; step < recorded.iterations.size(); ++step) {
      const std::vector<int>& needed = recorded.iterations[step];
      refactor += recorded.factor;
      reuse += recorded.Reused(needed.front());
      const int spent = SpentOf(needed[factored], model.Budget(), recorded.seen);
      const double seconds = spent > 0 ? recorded.Reused(spent) : 0;
      by_model += seconds;
      if (spent == needed[factored]) {
        model.RecordReuse(Tried(spent, seconds));
        continue;
      }
      model.RecordRefactorization(recorded.factor, Tried(spent, seconds));
      by_model += recorded.factor;
      factored = step + 1;
    }
    EXPECT_LE(by_model, 1.1 * std::min(refactor, reuse)) << recorded.name;
  }
}

TEST(SeriesModelTest, JumpCostsAtMostOneMoreFactorization) {
  const Iterations calm = [](int, int) { return 3; };
  const Iterations jumps = [](int age, int step) {
    // From steps 50 and 120 on, older factors are useless.
    for (const int jump : {50, 120}) {
      if (step >= jump && step - age < jump) return 100000;
    }
    return 3;
  };
  EXPECT_LE(SecondsOfModel(jumps), SecondsOfModel(calm) + 2 * 2.5 * kFactor);
}

// If a few directions slow convergence, the estimate of the remaining iterations is much too high.
// A step is therefore not abandoned before it has used as many iterations as the previous step.
TEST(SeriesModelTest, AllowsTheIterationsOfThePreviousStep) {
  SeriesModel model(kFactor, 1);
  EXPECT_EQ(model.Budget().least, 0);
  model.RecordRefactorization(kFactor, {});
  model.RecordReuse(Tried(7, 7));
  EXPECT_EQ(model.Budget().least, 7);
  model.RecordReuse(Tried(9, 9));
  EXPECT_EQ(model.Budget().least, 9);
  model.RecordRefactorization(kFactor, {});
  EXPECT_EQ(model.Budget().least, 7);  // same as after the previous factorization
}

// If matrices recur, a step that reuses the factor may cost up to a factorization more than the
// cheapest step.
TEST(SeriesModelTest, DoesNotRepeatStepsThatCostMoreThanAFactorization) {
  constexpr double kLittle = 3;
  for (const double much : {0.9 * kFactor, kFactor + 1.1 * kLittle}) {
    SeriesModel model(kFactor, 1);
    model.RecordRefactorization(kFactor, {});
    for (int step = 0; step < 5; ++step) model.RecordReuse({3, kLittle, kLittle});
    model.RecordReuse({12, much, much});  // 12 iterations of GMRES cost `much`
    EXPECT_EQ(model.Budget().iterations > 0, much < kFactor) << much;
  }
}

// An iteration of GMRES costs more than 1, so the limit of a step is a cost and not a number of
// iterations.
TEST(SeriesModelTest, LimitsStepsToTwiceTheCostOfAFactorization) {
  constexpr double kCost = 12;  // cost of five iterations
  for (const double worth : {1.5, 5.0, 20.0}) {
    SeriesModel model(worth, 1);
    model.RecordRefactorization(worth, {});
    model.RecordReuse({5, kCost, kCost});
    model.RecordRefactorization(worth, {});
    if (worth > kCost) {
      EXPECT_EQ(model.Budget().max_cost, 2 * worth);
      continue;
    }
    // A factor that was useful is tried again after some time, with a limit of twice its cost.
    for (int step = 0; step < 64 && model.Budget().iterations == 0; ++step) {
      model.RecordRefactorization(worth, {});
    }
    EXPECT_EQ(model.Budget().max_cost, 2 * kCost) << worth;
    EXPECT_EQ(model.Budget().max_remaining, 2 * kCost) << worth;
    // After a failure, the cost of a factorization alone determines the limit.
    model.RecordRefactorization(worth, {5, kCost, kCost});
    for (int step = 0; step < 64 && model.Budget().iterations == 0; ++step) {
      model.RecordRefactorization(worth, {});
    }
    EXPECT_EQ(model.Budget().max_cost, std::max(2 * worth, 4.0)) << worth;
    EXPECT_EQ(model.Budget().max_remaining, worth) << worth;
  }
}

// If one factor fails after others were useful, the next ones may be useful again.
TEST(SeriesModelTest, TriesNextFactorAfterASingleFailure) {
  SeriesModel model(kFactor, 1);
  model.RecordRefactorization(kFactor, {});
  for (int step = 0; step < 10; ++step) model.RecordReuse(Tried(5, 5));
  model.RecordRefactorization(kFactor, {});
  model.RecordRefactorization(kFactor, Tried(32, 32));
  int factorizations = 0;
  while (model.Budget().iterations == 0) {
    model.RecordRefactorization(kFactor, {});
    ++factorizations;
    ASSERT_LE(factorizations, 2);
  }
  // A second failure is not treated as an exception.
  model.RecordRefactorization(kFactor, Tried(32, 32));
  while (model.Budget().iterations == 0) {
    model.RecordRefactorization(kFactor, {});
    ++factorizations;
    ASSERT_LE(factorizations, 64);
  }
  EXPECT_GE(factorizations, 10);
}

// On a busy machine a step is delayed now and then.
TEST(SeriesModelTest, IgnoresDelayedSteps) {
  constexpr double kWaited = 60;  // seconds per iteration of a delayed step
  for (const int every : {4, 7, kSteps}) {
    SeriesModel model(10, 0.1);
    model.RecordRefactorization(kFactor, {});
    int factorizations = 0;
    for (int step = 1; step < kSteps; ++step) {
      const double seconds = step % every == 1 ? kWaited : 1;  // seconds per iteration
      constexpr int kNeeded = 12;
      if (kNeeded == SpentOf(kNeeded, model.Budget())) {
        model.RecordReuse(Tried(kNeeded, kNeeded * seconds));
      } else {
        model.RecordRefactorization(kFactor * seconds, {});
        ++factorizations;
      }
    }
    EXPECT_LE(factorizations, kSteps / 40) << "every step number " << every;
  }
}

TEST(SeriesModelTest, TriesOldFactorAgainAfterLargeChangesEnd) {
  const Iterations calms = [](int, int step) { return step < 60 ? 100000 : 3; };
  const Iterations calm = [](int, int) { return 3; };
  EXPECT_LE(SecondsOfModel(calms), SecondsOfModel(calm) + (60 + 64) * kFactor);
}

// Two iterations, a twentieth of a factorization, show that a factor is useless.
TEST(SeriesModelTest, TriesAgainSoonIfAttemptsAreCheap) {
  constexpr int kCalm = 20;
  const Iterations calms = [](int, int step) { return step < kCalm ? 100000 : 3; };
  const Iterations calm = [](int, int) { return 3; };
  EXPECT_LE(SecondsOfModel(calms), SecondsOfModel(calm) + (kCalm + 10) * kFactor);
}

TEST(SeriesModelTest, IgnoresTimesThatWereNotMeasured) {
  SeriesModel model(2, 0.5);
  model.RecordRefactorization(0, {});
  EXPECT_EQ(model.factor_seconds(), 2);
  model.RecordReuse(Tried(0, 0));  // already solved
  EXPECT_EQ(model.cost_seconds(), 0.5);
  EXPECT_EQ(model.age(), 1);
  EXPECT_GT(model.Budget().iterations, 0);
}

// A factorization takes as long as 20 iterations, but the predicted number is three.
TEST(SeriesModelTest, ReplacesPredictedIterationsByMeasuredOnes) {
  for (const int needed : {7, 18}) {
    SeriesModel model(kFactor, kFactor / 3);
    model.RecordRefactorization(kFactor, {});
    int factorizations = 0;
    for (int step = 0; step < 6; ++step) {
      const int spent = SpentOf(needed, model.Budget());
      if (spent == needed) {
        model.RecordReuse(Tried(spent, spent * kFactor / 20));
      } else {
        model.RecordRefactorization(kFactor, Tried(spent, spent * kFactor / 20));
        ++factorizations;
      }
    }
    EXPECT_LE(factorizations, needed == 7 ? 0 : 2) << needed;
  }
}

TEST(SeriesModelTest, FailedStepDoesNotChangeTheEstimates) {
  SeriesModel model(kFactor, 1);
  model.RecordRefactorization(kFactor, {});
  for (int step = 0; step < 5; ++step) model.RecordReuse(Tried(3, 3));
  const SeriesBudget before = model.Budget();
  model.RecordFailure(Tried(11, 11));
  EXPECT_EQ(model.age(), 5);
  EXPECT_EQ(model.Budget().iterations, before.iterations);
  EXPECT_EQ(model.Budget().max_remaining, before.max_remaining);
}

}  // namespace
}  // namespace crout::series_model_test
