// SPDX-License-Identifier: Apache-2.0

// Tests the code that host and device versions of the iterative Crout method share.
#include <cmath>
#include <complex>
#include <limits>

#include "kernels/icm/pivot_rule.h"
#include "kernels/icm/run_record.h"
#include "kernels/icm/tolerances.h"
#include "kernels/lu_algorithm.h"
#include "kernels/numerics/permutation.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::iterative_crout_test {
namespace {

TEST(PivotRuleTest, AppliesBoundsOfEachRule) {
  const PivotCriterion interval{.rule = PivotRule::kInterval, .low = 1e-5, .high = 1e5};
  EXPECT_TRUE(IsBad(interval, 1e-5, 0));  // (low, high]
  EXPECT_FALSE(IsBad(interval, 1.001e-5, 0));
  EXPECT_FALSE(IsBad(interval, 1e5, 0));
  EXPECT_TRUE(IsBad(interval, 1.001e5, 0));
  const PivotCriterion threshold{.rule = PivotRule::kThreshold, .threshold = 0.25};
  EXPECT_FALSE(IsBad(threshold, 1, 4));
  EXPECT_TRUE(IsBad(threshold, 0.999, 4));
  for (const PivotRule rule : {PivotRule::kPartial, PivotRule::kInterval, PivotRule::kThreshold}) {
    EXPECT_TRUE(IsBad({.rule = rule, .low = 0}, 0, 0));
    EXPECT_TRUE(IsBad({.rule = rule, .low = 0}, NAN, 1));
  }
  EXPECT_FALSE(IsBad({.rule = PivotRule::kNone}, 0, 1));
}

TEST(HasConvergedTest, UsesRelativeChangeAndRejectsNonFiniteValues) {
  EXPECT_TRUE(HasConverged(1.0, 1.0, 0.0));
  EXPECT_FALSE(HasConverged(1.0, std::nextafter(1.0, 2), 0.0));
  EXPECT_TRUE(HasConverged(-100.0, -101.0, 0.01));
  EXPECT_FALSE(HasConverged(-100.0, -102.0, 0.01));
  EXPECT_FALSE(HasConverged(1e-300, 0.0, 0.5));
  for (const double wrong : {double{NAN}, double{INFINITY}, -double{INFINITY}}) {
    EXPECT_FALSE(HasConverged(wrong, wrong, 0.5));
    EXPECT_FALSE(HasConverged(1.0, wrong, 0.5));
    EXPECT_FALSE(HasConverged(wrong, 1.0, 0.5));
  }
}

TEST(HasConvergedTest, UsesSumOfPartsOfComplexNumbers) {
  using Complex = std::complex<double>;
  EXPECT_TRUE(HasConverged(Complex{1, 2}, Complex{1, 2}, 0.0));
  EXPECT_FALSE(HasConverged(Complex{1, 2}, Complex{1, std::nextafter(2.0, 3)}, 0.0));
  // The changes of both parts sum to 1, and the modulus of 60 + 40i is 72.
  EXPECT_TRUE(HasConverged(Complex{59.5, 40.5}, Complex{60, 40}, 0.01));
  EXPECT_FALSE(HasConverged(Complex{59.5, 40.75}, Complex{60, 40}, 0.01));
  EXPECT_FALSE(HasConverged(Complex{1e-300, 1e-300}, Complex{0, 0}, 0.5));
  constexpr double kLargest = std::numeric_limits<double>::max();
  EXPECT_TRUE(HasConverged(Complex{kLargest, kLargest}, Complex{kLargest, kLargest}, 0.0));
  for (const double wrong : {double{NAN}, double{INFINITY}, -double{INFINITY}}) {
    for (const Complex bad : {Complex{wrong, 0}, Complex{0, wrong}}) {
      EXPECT_FALSE(HasConverged(bad, bad, 0.5));
      EXPECT_FALSE(HasConverged(Complex{1, 1}, bad, 0.5));
      EXPECT_FALSE(HasConverged(bad, Complex{1, 1}, 0.5));
    }
  }
}

TEST(HasConvergedTest, UsesRelativeAndAbsoluteTolerance) {
  LuParameters parameters;
  parameters.tolerance = 0.01;
  const Tolerances<double> relative(parameters);
  EXPECT_TRUE(HasConverged(-100.0, -101.0, relative));
  EXPECT_FALSE(HasConverged(0.0, 1e-300, relative));
  parameters.absolute_tolerance = 0.5;
  const Tolerances<double> both(parameters);
  EXPECT_TRUE(HasConverged(0.0, 0.5, both));
  EXPECT_TRUE(HasConverged(98.5, 100.0, both));
  EXPECT_FALSE(HasConverged(98.25, 100.0, both));
  using Complex = std::complex<double>;
  EXPECT_TRUE(HasConverged(Complex{0, 0}, Complex{0.25, -0.25}, both));
  EXPECT_FALSE(HasConverged(Complex{0, 0}, Complex{0.5, -0.25}, both));
  for (const double wrong : {double{NAN}, double{INFINITY}, -double{INFINITY}}) {
    EXPECT_FALSE(HasConverged(wrong, wrong, both));
    EXPECT_FALSE(HasConverged(1.0, wrong, both));
  }
}

TEST(SectionsTest, ComputesPublishedSizeAndBounds) {
  EXPECT_EQ(PublishedSectionSize(10, 32), 256);
  EXPECT_EQ(PublishedSectionSize(2561, 32), 256);
  EXPECT_EQ(PublishedSectionSize(4156, 32), 416);
  EXPECT_EQ(PublishedSectionSize(4156, 1), 415);
  EXPECT_EQ(PublishedSectionSize(20000, 32), 1024);
  constexpr SectionGrid kGrid{10, 4};
  EXPECT_EQ(kGrid.count(), 3);
  EXPECT_EQ(kGrid.begin(2), 8);
  EXPECT_EQ(kGrid.end(1), 8);
  EXPECT_EQ(kGrid.end(2), 10);
  EXPECT_EQ((SectionGrid{0, 4}.count()), 0);
}

TEST(PermutationTest, ConvertsToInterchangesAndBack) {
  const std::vector<int64_t> p = {3, 0, 4, 1, 2};
  std::vector<int64_t> ipiv(5);
  InterchangesOf(p, ipiv.data());
  for (int64_t i = 0; i < 5; ++i) EXPECT_GE(ipiv[i], i + 1);
  EXPECT_EQ(PermutationOf(ipiv.data(), 5), p);
  const std::vector<int64_t> swaps = {3, 2, 5, 4, 5};  // in getrf's form
  InterchangesOf(PermutationOf(swaps.data(), 5), ipiv.data());
  EXPECT_EQ(ipiv, swaps);
}

TEST(CheckParametersTest, AcceptsOnlySupportedBlockSizes) {
  MethodTraits traits;
  LuParameters parameters;
  parameters.block_size = 64;
  EXPECT_THAT(CheckParameters(traits, parameters),
              FailsWith(absl::StatusCode::kInvalidArgument, "takes no block size"));
  traits.block_sizes = {32, 256};
  for (const int taken : {0, 32, 64, 128, 256}) {
    parameters.block_size = taken;
    EXPECT_OK(CheckParameters(traits, parameters)) << taken;
  }
  for (const int wrong : {-32, -1, 1, 16, 33, 96, 512, 1 << 30}) {
    parameters.block_size = wrong;
    EXPECT_THAT(CheckParameters(traits, parameters),
                FailsWith(absl::StatusCode::kInvalidArgument, "a power of two from 32 to 256"))
        << wrong;
  }
  parameters.block_size = 32;
  traits.iterative = true;
  EXPECT_THAT(CheckParameters(traits, parameters),
              FailsWith(absl::StatusCode::kInvalidArgument, "except in variant 'published'"));
  traits.variants = {MethodVariant::kFast, MethodVariant::kPublished};
  parameters.variant = MethodVariant::kPublished;
  EXPECT_OK(CheckParameters(traits, parameters));
}

TEST(CheckParametersTest, AcceptsIterationParametersOnlyForIterativeMethods) {
  MethodTraits traits;
  traits.iterative = true;
  LuParameters parameters;
  parameters.tolerance = 1e-8;
  parameters.section_size = 100;
  parameters.sweep_limit = 7;
  parameters.start = FactorView{};
  EXPECT_OK(CheckParameters(traits, parameters));
  parameters.pivoting = PivotCriterion{};
  EXPECT_THAT(CheckParameters(traits, parameters),
              FailsWith(absl::StatusCode::kInvalidArgument, "takes no pivoting rule"));
  traits.supports_pivoting = true;
  EXPECT_OK(CheckParameters(traits, parameters));
  for (const double wrong : {-1e-300, 1.0, double{NAN}}) {
    parameters.tolerance = wrong;
    EXPECT_THAT(CheckParameters(traits, parameters),
                FailsWith(absl::StatusCode::kInvalidArgument, "tolerance"));
  }
  parameters.tolerance = 0;
  parameters.absolute_tolerance = 1;
  EXPECT_THAT(
      CheckParameters(traits, parameters),
      FailsWith(absl::StatusCode::kInvalidArgument, "no absolute tolerance on this device"));
  traits.supports_absolute_tolerance = true;
  EXPECT_OK(CheckParameters(traits, parameters));
  parameters.variant = MethodVariant::kPublished;
  EXPECT_THAT(CheckParameters(traits, parameters),
              FailsWith(absl::StatusCode::kUnimplemented, "has no variant 'published'"));
  traits.variants = {MethodVariant::kFast, MethodVariant::kPublished};
  EXPECT_OK(CheckParameters(traits, parameters));
  traits.iterative = false;
  parameters = {};
  parameters.section_size = 1;
  EXPECT_THAT(CheckParameters(traits, parameters),
              FailsWith(absl::StatusCode::kInvalidArgument, "takes no section size"));
}

TEST(FinishRunTest, ReturnsTheStatusOfEveryOutcome) {
  RunRecord record;
  record.row = 3;
  record.column = 4;
  record.sweeps = 9;
  EXPECT_THAT(FinishRun(record, nullptr), FailsWith(absl::StatusCode::kInternal, "did not finish"));
  record.outcome = RunOutcome::kDone;
  EXPECT_OK(FinishRun(record, nullptr));
  record.outcome = RunOutcome::kStopped;
  EXPECT_THAT(FinishRun(record, nullptr), FailsWith(absl::StatusCode::kCancelled, "stopped"));
  record.outcome = RunOutcome::kSweepLimit;
  EXPECT_THAT(FinishRun(record, nullptr), FailsWith(absl::StatusCode::kAborted, "within 9 sweeps"));
  record.outcome = RunOutcome::kNotFinite;
  EXPECT_THAT(FinishRun(record, nullptr),
              FailsWith(absl::StatusCode::kInvalidArgument, "element (3, 4)"));
}

}  // namespace
}  // namespace crout::testing::iterative_crout_test
