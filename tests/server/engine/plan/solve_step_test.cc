// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/solve_step.h"

#include <gtest/gtest.h>

namespace crout::solve_step_test {
namespace {

FactorSummary Dense() {
  FactorSummary factor;
  factor.n = 10;
  factor.pivot_growth = 1;
  return factor;
}

FactorSummary Sparse() {
  FactorSummary factor = Dense();
  factor.sparse.emplace();
  return factor;
}

TEST(WithCorrectionsTest, SolutionsByAccurateDenseFactorsNeedNone) {
  const SolveOptions options = WithCorrections({}, Dense(), true);
  EXPECT_EQ(options.max_corrections, 0);
  EXPECT_EQ(options.max_refinement_steps, 0);
}

TEST(WithCorrectionsTest, SolutionsByLowPrecisionFactorsAreCorrected) {
  FactorSummary factor = Dense();
  factor.precision = FactorPrecision::kSingle;
  EXPECT_GT(WithCorrections({}, factor, true).max_corrections, 0);
}

TEST(WithCorrectionsTest, SolutionsByAccurateSparseFactorsAreRefined) {
  const SolveOptions options = WithCorrections({}, Sparse(), true);
  EXPECT_EQ(options.max_corrections, 0);
  EXPECT_GT(options.max_refinement_steps, 0);
  SolveOptions many;
  many.max_refinement_steps = 50;
  EXPECT_EQ(WithCorrections(many, Sparse(), true).max_refinement_steps, 50);
}

TEST(WithCorrectionsTest, SolutionsByInaccurateSparseFactorsAreCorrected) {
  FactorSummary perturbed = Sparse();
  perturbed.sparse->numeric.perturbed_pivots = 1;
  EXPECT_GT(WithCorrections({}, perturbed, true).max_corrections, 0);
  FactorSummary grown = Sparse();
  grown.sparse->numeric.pivot_growth = 10 * kModestGrowth;
  EXPECT_GT(WithCorrections({}, grown, true).max_corrections, 0);
  FactorSummary poor = Sparse();
  poor.quality = 1e9;
  ASSERT_TRUE(poor.is_poor());
  EXPECT_GT(WithCorrections({}, poor, true).max_corrections, 0);
}

TEST(WithCorrectionsTest, NothingIsVerifiedWithoutTheMatrix) {
  SolveOptions options;
  options.verify = true;
  FactorSummary perturbed = Sparse();
  perturbed.sparse->numeric.perturbed_pivots = 1;
  for (const FactorSummary& factor : {Dense(), Sparse(), perturbed}) {
    const SolveOptions without = WithCorrections(options, factor, false);
    EXPECT_FALSE(without.verify);
    EXPECT_EQ(without.max_corrections, 0);
    EXPECT_EQ(without.max_refinement_steps, 0);
  }
  EXPECT_TRUE(WithCorrections(options, Dense(), true).verify);
}

}  // namespace
}  // namespace crout::solve_step_test
