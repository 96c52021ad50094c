// SPDX-License-Identifier: Apache-2.0

// Tests that an analysis never uses more memory than AnalysisBytes() and its claims. All
// allocations of this program are counted, but not those of the ordering program.
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/delayed_pivots.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/matrices/sparse_gallery.h"
#include "tests/support/memory/counted_heap.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::analysis_memory_test {
namespace {

constexpr auto kNeverStop = [] { return false; };
// Allowance in bytes for small allocations.
constexpr int64_t kSlack = 4096;

struct Case {
  std::string name;
  PackedSparse a;
  AnalysisOptions options;
};

// A matrix that maximizes the queue of the matching: in the last augmentation, every row is reached
// from every earlier row, each time with a smaller distance.
PackedSparse Chain(int32_t n) {
  const double step = 200.0 / n;
  std::vector<SparseEntry> entries = {{1, 0, 1.0}, {0, n - 1, std::exp(-3 * step * n)}};
  for (int32_t j = 1; j < n; ++j) {
    entries.push_back({j, j, 1.0});
    for (int32_t i = j + 1; i < n; ++i) {
      entries.push_back({i, j, std::exp(-step * (i == j + 1 ? 1 : 2 * (i - j)))});
    }
  }
  return PackEntries(entries, n, DType::kFloat64);
}

// A matrix with `degree` random neighbours per unknown.
PackedSparse Random(int32_t n, int32_t degree) {
  std::mt19937 random(7);
  std::vector<SparseEntry> entries;
  for (int32_t j = 0; j < n; ++j) {
    entries.push_back({j, j, 4.0});
    for (int32_t k = 0; k < degree; ++k) {
      entries.push_back({static_cast<int32_t>(random() % n), j, 1.0});
    }
  }
  return PackEntries(entries, n, DType::kFloat64);
}

std::vector<Case> Cases() {
  std::vector<int32_t> many(200);
  std::iota(many.begin(), many.end(), 0);
  AnalysisOptions matched, keeping, keeping_many;
  matched.matching = MatchingMode::kOn;
  keeping.matching = MatchingMode::kOff;
  keeping.keep = {5};
  keeping_many.matching = MatchingMode::kOff;
  keeping_many.keep = many;
  std::vector<Case> cases;
  cases.push_back({"chain", Chain(600), matched});
  cases.push_back({"random", Random(3000, 12), {}});
  cases.push_back({"random, one kept", Random(3000, 12), keeping});
  cases.push_back({"random, many kept", Random(3000, 3), keeping_many});
  cases.push_back(
      {"full, one kept", PackSparse(RandomMatrix(363, 363, 1), 363, DType::kFloat64), keeping});
  cases.push_back({"grid", PackEntries(GridEntries(14, 3), 2744, DType::kFloat64), {}});
  cases.push_back(
      {"grid, many kept", PackEntries(GridEntries(14, 3), 2744, DType::kFloat64), keeping_many});
  return cases;
}

// Grants every claim to the counted heap.
class Claims {
 public:
  explicit Claims(size_t base) : base_(base) {
    CountedHeap::Restart();
    CountedHeap::Grant(base);
  }
  // Withdraws the previous claim only after granting the new one, because its memory may be in use
  // until then.
  absl::Status operator()(size_t bytes) {
    CountedHeap::Grant(bytes);
    CountedHeap::Withdraw(std::exchange(claimed_, bytes));
    return absl::OkStatus();
  }
  size_t granted() const { return base_ + claimed_; }

 private:
  const size_t base_;
  size_t claimed_ = 0;
};

TEST(SparseAnalysisMemoryTest, AnalyzesWithinClaimedMemory) {
  for (Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    Claims claims(AnalysisBytes(one.a.n));
    one.options.claim = [&](size_t bytes) { return claims(bytes); };
    ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(one.a.view(), one.options, kNeverStop));
    EXPECT_LE(CountedHeap::MaxExcess(), kSlack);
    EXPECT_LE(analysis.bytes(), claims.granted());
  }
}

// Rows are interchanged in every front as much as possible, and many positions are postponed.
TEST(SparseAnalysisMemoryTest, PostponesWithinClaimedMemory) {
  for (Case& one : Cases()) {
    if (!one.options.keep.empty()) continue;
    SCOPED_TRACE(one.name);
    ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(one.a.view(), one.options, kNeverStop));
    for (const int32_t every : {3, 1000000}) {
      std::vector<int32_t> positions, interchanges(one.a.n);
      for (int64_t f = 0; f < analysis.fronts(); ++f) {
        const auto d1 = static_cast<int32_t>(analysis.eliminated(f));
        for (int32_t k = 0; k < d1; ++k) interchanges[analysis.first_position[f] + k] = d1 - 1;
      }
      for (int32_t k = 0; k < one.a.n; k += every) positions.push_back(k);
      AnalysisOptions options;
      Claims claims(AnalysisBytes(one.a.n));
      options.claim = [&](size_t bytes) { return claims(bytes); };
      ASSERT_OK_AND_ASSIGN(const Analysis postponed, Postpone(analysis, one.a.view(), positions,
                                                              interchanges, options, kNeverStop));
      EXPECT_LE(CountedHeap::MaxExcess(), kSlack);
      EXPECT_LE(postponed.bytes(), claims.granted());
    }
  }
}

// Skew-symmetric matrices with a tiny diagonal, most of whose pivots are delayed.
TEST(SparseAnalysisMemoryTest, DelaysWithinClaimedMemory) {
  for (const auto& [m, dimensions] : {std::pair(40, 2), std::pair(9, 3)}) {
    for (const DType dtype : {DType::kFloat32, DType::kComplex128}) {
      SCOPED_TRACE(::testing::Message() << dimensions << " dimensions, " << NameOf(dtype));
      std::vector<SparseEntry> entries = GridEntries(m, dimensions);
      for (SparseEntry& entry : entries) {
        entry.value = entry.row == entry.column ? 1e-6 : entry.row < entry.column ? 1 : -1;
      }
      const PackedSparse a = PackEntries(entries, dimensions == 2 ? m * m : m * m * m, dtype);
      AnalysisOptions options;
      options.matching = MatchingMode::kOff;
      ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(a.view(), options, kNeverStop));
      Claims claims(AnalysisBytes(a.n));
      options.claim = [&](size_t bytes) { return claims(bytes); };
      ASSERT_OK_AND_ASSIGN(const Analysis delayed,
                           DelayPivots(analysis, a.view(), dtype, options, kNeverStop));
      EXPECT_GT(delayed.factor_entries(), analysis.factor_entries());
      EXPECT_LE(CountedHeap::MaxExcess(), kSlack);
      EXPECT_LE(delayed.bytes(), claims.granted());
    }
  }
}

}  // namespace
}  // namespace crout::testing::analysis_memory_test
