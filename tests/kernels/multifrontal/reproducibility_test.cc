// SPDX-License-Identifier: Apache-2.0

// Tests that the multifrontal method gives the same bits for the same matrix: in repeated runs, for
// trees of small fronts, after another matrix, and in less memory.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/sparse/ordering_process.h"
#include "tests/kernels/multifrontal/multifrontal_testing.h"
#include "tests/support/matrices/sparse_gallery.h"
#include "tests/support/runners/device_under_test.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::reproducibility_test {
namespace {

class MultifrontalReproducibilityTest
    : public OnDeviceUnderTest<MultifrontalRunner, ::testing::TestWithParam<DType>> {
 protected:
  // Returns the permitted error of a solve without refinement. Growth may cost some digits.
  static double Tolerance(DType dtype) { return 1000 * UnitRoundoff(dtype); }
};

// Compares the factors and the interchanges, but not the gap between them.
bool SameBits(const Factor& one, const Factor& other) {
  const MultifrontalLayout layout(one.analysis, one.dtype);
  const size_t end = one.analysis.factor_entries() * SizeOf(one.dtype);
  return std::memcmp(one.block.data(), other.block.data(), end) == 0 &&
         std::memcmp(one.block.data() + layout.pivots, other.block.data() + layout.pivots,
                     one.analysis.n * sizeof(int32_t)) == 0;
}

TEST_P(MultifrontalReproducibilityTest, GivesTheSameBitsAgain) {
  for (const int64_t m : {6, 18}) {
    const PackedSparse a = OfType(GridEntries(m, 3), m * m * m, GetParam());
    ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), GetParam()));
    Factor other = factor;
    ASSERT_OK(runner_->Again(a.view(), other));
    EXPECT_TRUE(SameBits(factor, other));
  }
}

// Trees of many small fronts, of which GPUs process several levels, or many children, at once: a
// chain with more levels, a star with more children, and both combined with fronts of other sizes.
std::vector<SparseCase> CasesOfSmallFronts() {
  std::vector<SparseEntry> chain, star;
  constexpr int32_t kLength = 1200;
  for (int32_t i = 0; i < kLength; ++i) {
    chain.push_back({i, i, 4.0 + i % 5});
    if (i == 0) continue;
    chain.push_back({i, i - 1, -1.0});
    chain.push_back({i - 1, i, -1.5});
  }
  constexpr int32_t kLeaves = 900;
  constexpr int32_t kHub = 90;
  const auto couple = [](std::vector<SparseEntry>& entries, int32_t i, int32_t j) {
    entries.push_back({i, j, 1.0 / (1 + i % 7)});
    entries.push_back({j, i, -1.0 / (1 + j % 3)});
  };
  for (int32_t i = 0; i < kLeaves; ++i) {
    star.push_back({i, i, 3.0 + i % 4});
    couple(star, i, kLeaves + i % kHub);
    couple(star, i, kLeaves + (i * 7 + 1) % kHub);
  }
  for (int32_t i = kLeaves; i < kLeaves + kHub; ++i) {
    for (int32_t j = kLeaves; j < i; ++j) couple(star, i, j);
    star.push_back({i, i, 200.0});
  }
  // The chain and a grid are attached to the star.
  std::vector<SparseEntry> mixed = star;
  const auto add = [&](const std::vector<SparseEntry>& entries, int32_t first) {
    for (const SparseEntry& entry : entries) {
      mixed.push_back({entry.row + first, entry.column + first, entry.value});
    }
    couple(mixed, first, kLeaves);
  };
  constexpr int32_t kM = 24;
  add(chain, kLeaves + kHub);
  add(GridEntries(kM, 2), kLeaves + kHub + kLength);
  return {{"chain", kLength, chain},
          {"star", kLeaves + kHub, star},
          {"mixed", kLeaves + kHub + kLength + kM * kM, mixed}};
}

TEST_P(MultifrontalReproducibilityTest, FactorsManySmallFronts) {
  AnalysisOptions options;
  options.ordering = OrderingMode::kNatural;  // keeps the chain, and eliminates the hub last
  for (const SparseCase& one : CasesOfSmallFronts()) {
    SCOPED_TRACE(one.name);
    const PackedSparse a = OfType(one.entries, one.n, GetParam());
    if (one.name == "mixed") options.ordering = OrderingMode::kMinimumDegree;
    ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), GetParam(), options));
    const Analysis& analysis = factor.analysis;
    if (one.name == "chain") {
      EXPECT_GT(analysis.levels(), 100);
    }
    if (one.name == "star") {
      int32_t most = 0;
      for (int64_t f = 0; f < analysis.fronts(); ++f) {
        most = std::max(most, analysis.child_start[f + 1] - analysis.child_start[f]);
      }
      EXPECT_GT(most, 300);
    }
    for (const Op op : kOps) {
      for (const int64_t k : {1, 3, 20}) {
        EXPECT_LT(runner_->ErrorOf(factor, a.view(), op, k, 2), Tolerance(GetParam()));
      }
    }
    // GPUs treat no complex128 front as small, so a few rounds are enough.
    const int rounds = GetParam() == DType::kComplex128 ? 5 : 100;
    Factor again = factor;
    for (int round = 0; round < rounds; ++round) {
      ASSERT_OK(runner_->Again(a.view(), again, kNeverStop, nullptr, &factor));
      ASSERT_TRUE(SameBits(factor, again)) << round;
    }
  }
}

TEST_P(MultifrontalReproducibilityTest, GivesTheSameBitsAfterAnotherMatrix) {
  constexpr int64_t kM = 14;
  for (const MatchingMode matching : {MatchingMode::kOff, MatchingMode::kOn}) {
    AnalysisOptions options;
    options.matching = matching;
    auto entries = GridEntries(kM, 3);
    const PackedSparse before = OfType(entries, kM * kM * kM, GetParam());
    ASSERT_OK_AND_ASSIGN(const Factor last, runner_->Make(before.view(), GetParam(), options));
    for (size_t i = 0; i < entries.size(); i += 3) entries[i].value *= 1.25;
    const PackedSparse a = OfType(entries, kM * kM * kM, GetParam());
    Factor anew = last;
    ASSERT_OK_AND_ASSIGN(anew.summary, runner_->Again(a.view(), anew));
    ASSERT_FALSE(SameBits(last, anew));
    Factor like = last;
    ASSERT_OK_AND_ASSIGN(like.summary, runner_->Again(a.view(), like, kNeverStop, nullptr, &last));
    EXPECT_TRUE(SameBits(like, anew));
    EXPECT_EQ(like.summary.max_abs, anew.summary.max_abs);
    for (const Op op : kOps) {
      EXPECT_LT(runner_->ErrorOf(like, a.view(), op, 3, 0), Tolerance(GetParam()));
    }
    // Then reuses data of the previous result.
    Factor third = last;
    ASSERT_OK_AND_ASSIGN(third.summary,
                         runner_->Again(a.view(), third, kNeverStop, nullptr, &like));
    EXPECT_TRUE(SameBits(third, anew));
  }
}

TEST_P(MultifrontalReproducibilityTest, GivesTheSameBitsInLessMemory) {
  constexpr int64_t kM = 18;
  auto entries = GridEntries(kM, 3);
  const PackedSparse a = OfType(entries, kM * kM * kM, GetParam());
  AnalysisOptions options;
  options.ordering_program = OrderingProgram();
  ASSERT_OK_AND_ASSIGN(const Factor whole, runner_->Make(a.view(), GetParam(), options));
  for (size_t i = 0; i < entries.size(); i += 3) entries[i].value *= 1.25;
  const PackedSparse b = OfType(entries, kM * kM * kM, GetParam());
  Factor whole_b = whole;
  ASSERT_OK(runner_->Again(b.view(), whole_b));
  ASSERT_OK_AND_ASSIGN(const size_t most, runner_->WorkspaceBytes(whole));
  runner_->LimitWorkspace(0);
  ASSERT_OK_AND_ASSIGN(const size_t least, runner_->WorkspaceBytes(whole));
  ASSERT_LT(least, most);
  for (const size_t limit : {least, (least + most) / 2, most - 1}) {
    runner_->LimitWorkspace(limit);
    ASSERT_OK_AND_ASSIGN(const size_t bytes, runner_->WorkspaceBytes(whole));
    SCOPED_TRACE(::testing::Message() << bytes << " of " << most << " bytes, at most " << limit);
    EXPECT_LE(bytes, limit);
    Factor less = whole;
    ASSERT_OK_AND_ASSIGN(less.summary, runner_->Again(a.view(), less));
    EXPECT_TRUE(SameBits(less, whole));
    EXPECT_LT(runner_->ErrorOf(less, a.view(), Op::kNone, 2, 1), 4 * UnitRoundoff(GetParam()));
    // Reuses data of a factor made in the same memory, and of one made in more memory. Then
    // refactors in more memory with data of the factor made in less.
    for (const Factor* last : {&std::as_const(less), &whole}) {
      Factor next = whole;
      ASSERT_OK(runner_->Again(b.view(), next, kNeverStop, nullptr, last));
      EXPECT_TRUE(SameBits(next, whole_b));
    }
    runner_->LimitWorkspace(most);
    Factor again = whole;
    ASSERT_OK(runner_->Again(b.view(), again, kNeverStop, nullptr, &less));
    EXPECT_TRUE(SameBits(again, whole_b));
    EXPECT_LT(runner_->ErrorOf(again, b.view(), Op::kTranspose, 2, 1),
              4 * UnitRoundoff(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MultifrontalReproducibilityTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::reproducibility_test
