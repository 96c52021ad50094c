// SPDX-License-Identifier: Apache-2.0

// Tests jobs that factor sparse matrices on the device under test: the measurements of a factor,
// postponed pivots, and the retry in a larger block.
#include "kernels/jobs/sparse/sparse_factorize.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/factor_parts.h"
#include "kernels/numerics/accuracy_warnings.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/util/sanitizers.h"
#include "kernels/util/status_macros.h"
#include "tests/kernels/jobs/sparse_job_testing.h"
#include "tests/kernels/multifrontal/multifrontal_testing.h"
#include "tests/support/runners/device_under_test.h"

namespace crout::testing::sparse_jobs_test {
namespace {

// A memory resource that allocates from the device's memory and counts its own blocks.
class SeparateMemory final : public MemoryResource {
 public:
  explicit SeparateMemory(MemoryResource& memory) : memory_(memory) {}
  size_t live() const { return blocks_.size(); }

 protected:
  absl::StatusOr<void*> DoAllocate(size_t bytes) override {
    CROUT_ASSIGN_OR_RETURN(Buffer block, memory_.Allocate(bytes));
    void* const data = block.data();
    blocks_.emplace(data, std::move(block));
    return data;
  }
  void DoDeallocate(void* data, size_t) override { blocks_.erase(data); }

 private:
  MemoryResource& memory_;
  std::map<void*, Buffer> blocks_;
};

// A method that finds only during the factorization that it needs `times` times its predicted
// bytes. Each retry requests twice the previous block. If `times` is 0, no memory is sufficient.
class UnderestimatingLu final : public SparseLu {
 public:
  UnderestimatingLu(const SparseLu& lu, MemoryResource& memory, size_t times = 3)
      : lu_(lu), memory_(memory), times_(times) {}

  SeparateMemory& memory() const { return memory_; }

  const MethodTraits& traits() const override { return lu_.traits(); }
  absl::StatusOr<size_t> FactorBytes(const Analysis& analysis, DType dtype) const override {
    return lu_.FactorBytes(analysis, dtype);
  }
  absl::StatusOr<size_t> WorkspaceBytes(const Analysis& analysis, DType dtype,
                                        size_t most) const override {
    return lu_.WorkspaceBytes(analysis, dtype, most);
  }
  double PredictSeconds(const Analysis&, DType) const override { return 0; }
  double PredictWithoutAnalysis(int64_t, int64_t, DType) const override { return 0; }
  MemoryResource* factor_memory() const override { return &memory_; }
  std::optional<size_t> LargerFactor(std::span<const std::byte> factor) const override {
    if (times_ == 0) return std::nullopt;
    return 2 * factor.size();
  }
  bool SupportsDeterminants() const override { return false; }
  absl::StatusOr<NumericSummary> Factor(ExecutionContext& context, const Analysis& analysis,
                                        const AnySparse& a, DType dtype,
                                        std::span<std::byte> factor, std::span<std::byte> workspace,
                                        StopRequested stop,
                                        std::vector<int32_t>* postponable) const override {
    CROUT_ASSIGN_OR_RETURN(const size_t predicted, FactorBytes(analysis, dtype));
    if (times_ == 0 || factor.size() < times_ * predicted)
      return absl::ResourceExhaustedError("no room");
    return lu_.Factor(context, analysis, a, dtype, factor, workspace, stop, postponable);
  }
  absl::StatusOr<LogDeterminant> Determinant(ExecutionContext&, const Analysis&,
                                             const NumericSummary&, std::span<const std::byte>,
                                             DType) const override {
    return absl::InternalError("it leaves none");
  }

 private:
  const SparseLu& lu_;
  mutable SeparateMemory memory_;
  const size_t times_;
};

// GridEntries(20, 2) with another diagonal and with the entries of one direction set to `across`.
std::vector<SparseEntry> Weighted(double diagonal, double across) {
  std::vector<SparseEntry> entries = GridEntries(20, 2);
  for (SparseEntry& entry : entries) {
    if (entry.row == entry.column) entry.value = diagonal;
    if (std::abs(entry.row - entry.column) == 1) entry.value = across;
  }
  return entries;
}

class SparseJobsTest : public DeviceUnderTestFixture {
 protected:
  static absl::StatusOr<SparseFactorizePlan> Plan(const AnySparse& a,
                                                  std::shared_ptr<const Analysis> analysis,
                                                  size_t max_bytes,
                                                  const SparseLu* method = nullptr,
                                                  bool determinant = true,
                                                  std::optional<DType> factor_dtype = {}) {
    Device& device = *DeviceUnderTest();
    SparseFactorizeOptions wanted;
    wanted.max_bytes = max_bytes;
    wanted.method = MethodOf(device, "multifrontal");
    if (method != nullptr) wanted.method.lu = method;  // has the same factor format
    wanted.factor_dtype = factor_dtype.value_or(a.dtype);
    wanted.determinant = determinant;
    wanted.condition = true;
    return PlanSparseFactorize(wanted, std::move(analysis), false, a.dtype);
  }

  absl::StatusOr<Factorization> Run(const AnySparse& a, const AnalysisOptions& options,
                                    SparseGrowth* growth = nullptr,
                                    const SparseLu* method = nullptr, bool determinant = true,
                                    std::optional<DType> factor_dtype = {}) {
    CROUT_ASSIGN_OR_RETURN(Analysis analysis, Analyze(a, options, kNeverStop));
    CROUT_ASSIGN_OR_RETURN(
        const SparseFactorizePlan plan,
        Plan(a, std::make_shared<const Analysis>(std::move(analysis)),
             std::numeric_limits<size_t>::max(), method, determinant, factor_dtype));
    return RunPlan(a, plan, growth);
  }
  absl::StatusOr<Factorization> RunPlan(const AnySparse& a, const SparseFactorizePlan& plan,
                                        SparseGrowth* growth = nullptr) {
    CROUT_ASSIGN_OR_RETURN(Buffer upload, Uploaded(*context_, a));
    KernelTimings timings;
    return FactorizeSparse(*context_, plan, std::move(upload), kNeverStop, timings, growth);
  }

  // Factors `a` with this method and with the analysis of `known`, which has the same pattern.
  absl::StatusOr<Factorization> RunByAnalysisOf(const AnySparse& known, const AnySparse& a,
                                                std::string_view method, SparseGrowth* growth) {
    CROUT_ASSIGN_OR_RETURN(Analysis analysis, Analyze(known, {}, kNeverStop));
    SparseFactorizeOptions options;
    options.method = MethodOf(*DeviceUnderTest(), method);
    options.factor_dtype = a.dtype;
    CROUT_ASSIGN_OR_RETURN(
        const SparseFactorizePlan plan,
        PlanSparseFactorize(options, std::make_shared<const Analysis>(std::move(analysis)),
                            /*analysis_reused=*/true, a.dtype));
    return RunPlan(a, plan, growth);
  }

  // Returns the sparse methods that support factors of this type.
  static std::vector<std::string_view> MethodsFor(DType dtype) {
    std::vector<std::string_view> names;
    for (const std::string_view name : {"multifrontal", "klu"}) {
      const SparseMethod method = MethodOf(*DeviceUnderTest(), name);
      if (method.lu != nullptr && method.lu->SupportsSparse(dtype)) names.push_back(name);
    }
    return names;
  }

  // Returns the bytes of L, U and the interchanges.
  std::vector<std::byte> BitsOf(const Factorization& factor) {
    const MultifrontalLayout layout(*factor.summary.sparse->analysis, factor.summary.factor_dtype);
    std::vector<std::byte> bits(layout.bytes);
    EXPECT_OK(context_->ops().CopyToHost(factor.lu().data(), bits.data(), bits.size()));
    EXPECT_OK(context_->Synchronize());
    const size_t entries =
        factor.summary.sparse->analysis->factor_entries() * SizeOf(factor.summary.factor_dtype);
    // The gap between the entries and the interchanges has no defined content.
    std::fill(bits.begin() + entries, bits.begin() + layout.pivots, std::byte{0});
    return bits;
  }
};

TEST_P(SparseJobsTest, QualityIsMeasuredOnTheFactoredMatrix) {
  const PackedSparse a = OfType(GridEntries(20, 2), 400, GetParam());
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Run(a.view(), {}));
  const FactorSummary& summary = factor.summary;
  EXPECT_EQ(summary.info, 0);
  EXPECT_EQ(summary.algorithm, "multifrontal");
  ASSERT_TRUE(summary.quality.has_value());
  EXPECT_LT(*summary.quality, 10);
  EXPECT_GT(summary.pivot_growth, 0.99);
  EXPECT_LT(summary.pivot_growth, 2);
  ASSERT_TRUE(summary.rcond.has_value());
  EXPECT_GT(*summary.rcond, 1e-4);
  EXPECT_LT(*summary.rcond, 1e-1);
  // condition_signal decides if rcond was not estimated.
  EXPECT_FALSE(IsNearlySingular(summary.condition_signal, summary.factor_dtype, summary.n))
      << summary.condition_signal;
  ASSERT_TRUE(summary.det_log_abs.has_value());
  // Each pivot of this matrix is between 2 and 6.
  EXPECT_GT(*summary.det_log_abs, 400 * std::log(2.0));
  EXPECT_LT(*summary.det_log_abs, 400 * std::log(6.0));
  EXPECT_EQ(summary.sparse->numeric.perturbed_pivots, 0);
  EXPECT_EQ(factor.sparse_matrix().size() > 0, true);
}

// The solve that measures the factor detects these matrices by its error.
TEST_P(SparseJobsTest, NearlySingularMatricesHaveATinyPivotRatio) {
  constexpr int32_t kN = 60;
  std::vector<SparseEntry> path;  // weighted Laplacian of a path; its row sums are zero
  for (int32_t i = 0; i + 1 < kN; ++i) {
    const double weight = 0.1 * (1 + i % 7);
    path.insert(path.end(), {{i, i, weight}, {i + 1, i + 1, weight}});
    path.insert(path.end(), {{i, i + 1, -weight}, {i + 1, i, -weight}});
  }
  ASSERT_OK_AND_ASSIGN(const Factorization singular,
                       Run(OfType(path, kN, GetParam()).view(), AnalysisOptions()));
  ASSERT_EQ(singular.summary.info, 0);
  EXPECT_TRUE(IsNearlySingular(singular.summary.condition_signal, GetParam(), kN))
      << singular.summary.condition_signal;
  EXPECT_TRUE(singular.summary.is_nearly_singular());
  const PackedSparse grid = OfType(GridEntries(20, 2), 400, GetParam());
  ASSERT_OK_AND_ASSIGN(const Factorization regular, Run(grid.view(), AnalysisOptions()));
  EXPECT_FALSE(IsNearlySingular(regular.summary.condition_signal, GetParam(), 400))
      << regular.summary.condition_signal;
  EXPECT_FALSE(regular.summary.is_nearly_singular());
}

TEST_P(SparseJobsTest, SmallPivotsArePostponed) {
  std::vector<SparseEntry> entries = GridEntries(30, 2);
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  const PackedSparse grid = OfType(entries, 900, GetParam());
  ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(grid.view(), options, kNeverStop));
  // Sets the diagonal entries of three leaf fronts with one column to zero.
  int zeros = 0;
  for (int64_t f = 0; f < analysis.fronts() && zeros < 3; ++f) {
    if (analysis.eliminated(f) != 1 || analysis.child_start[f] != analysis.child_start[f + 1])
      continue;
    ++zeros;
    for (SparseEntry& entry : entries) {
      const int32_t row = analysis.row_order[analysis.first_position[f]];
      if (entry.row == row && entry.column == row) entry.value = 0;
    }
  }
  const PackedSparse a = OfType(entries, 900, GetParam());
  ASSERT_OK_AND_ASSIGN(const Factorization perturbed, Run(a.view(), options));
  EXPECT_EQ(perturbed.summary.sparse->numeric.perturbed_pivots, 3);
  EXPECT_EQ(perturbed.summary.sparse->postponements, 0);
  GrantingGrowth growth;
  ASSERT_OK_AND_ASSIGN(const Factorization postponed, Run(a.view(), options, &growth));
  EXPECT_EQ(postponed.summary.sparse->numeric.perturbed_pivots, 0);
  EXPECT_GT(postponed.summary.sparse->postponements, 0);
  EXPECT_LT(*postponed.summary.quality, 100);
}

TEST_P(SparseJobsTest, RetriesInALargerBlock) {
  Device& device = *DeviceUnderTest();
  const UnderestimatingLu method(*device.catalogue().sparse_lus.front(), device.memory());
  const PackedSparse a = OfType(GridEntries(20, 2), 400, GetParam());
  {
    GrantingGrowth growth;
    ASSERT_OK_AND_ASSIGN(const Factorization factor,
                         Run(a.view(), {}, &growth, &method, /*determinant=*/false));
    ASSERT_EQ(growth.claimed.size(), 2u) << "grants of twice and four times the first block";
    EXPECT_GT(growth.claimed[1], growth.claimed[0]);
    EXPECT_EQ(method.memory().live(), 1u) << "blocks that were too small are freed";
    EXPECT_LT(*factor.summary.quality, 10);
  }
  EXPECT_EQ(method.memory().live(), 0u);
  EXPECT_THAT(Run(a.view(), {}, nullptr, &method, /*determinant=*/false),
              FailsWith(absl::StatusCode::kResourceExhausted, "no room"));
  EXPECT_EQ(method.memory().live(), 0u);
  GrantingGrowth growth;
  EXPECT_THAT(Run(a.view(), {}, &growth, &method),
              FailsWith(absl::StatusCode::kUnimplemented, "computes no determinant"));
}

TEST_P(SparseJobsTest, PlansForLessWorkspaceGiveTheSameBits) {
  constexpr int64_t kSide = kSanitized ? 10 : 16;
  const PackedSparse a = OfType(GridEntries(kSide, 3), kSide * kSide * kSide, GetParam());
  AnalysisOptions options;
  options.ordering_program = OrderingProgram();
  ASSERT_OK_AND_ASSIGN(Analysis made, Analyze(a.view(), options, kNeverStop));
  const auto analysis = std::make_shared<const Analysis>(std::move(made));
  ASSERT_OK_AND_ASSIGN(const SparseFactorizePlan whole,
                       Plan(a.view(), analysis, std::numeric_limits<size_t>::max()));
  ASSERT_OK_AND_ASSIGN(const SparseFactorizePlan least, Plan(a.view(), analysis, 0));
  ASSERT_LT(least.bytes.peak, whole.bytes.peak);
  EXPECT_EQ(least.bytes.kept, whole.bytes.kept);
  ASSERT_OK_AND_ASSIGN(const Factorization expected, RunPlan(a.view(), whole));
  for (const size_t most :
       {least.bytes.peak, (least.bytes.peak + whole.bytes.peak) / 2, whole.bytes.peak}) {
    ASSERT_OK_AND_ASSIGN(const SparseFactorizePlan plan, Plan(a.view(), analysis, most));
    EXPECT_LE(plan.bytes.peak, most);
    ASSERT_OK_AND_ASSIGN(const Factorization factor, RunPlan(a.view(), plan));
    EXPECT_EQ(BitsOf(factor), BitsOf(expected));
    EXPECT_EQ(factor.summary.quality, expected.summary.quality);
    EXPECT_EQ(factor.summary.sparse->workspace.bytes, plan.buffers.bytes(plan.workspace));
  }
}

TEST_P(SparseJobsTest, StoredZerosSurviveScalesThatOverflow) {
  const DType dtype = GetParam();
  if (dtype != WideOf(dtype)) GTEST_SKIP() << "its entries are not that small";
  const PackedSparse a =
      PackEntries({{0, 0, 0.0}, {0, 1, 2e-160}, {1, 0, 3e-160}, {1, 1, 1e-8}}, 2, dtype);
  for (const std::string_view method : MethodsFor(dtype)) {
    SCOPED_TRACE(method);
    ASSERT_OK_AND_ASSIGN(const Factorization factor,
                         RunByAnalysisOf(a.view(), a.view(), method, nullptr));
    EXPECT_EQ(factor.summary.info, 0);
    EXPECT_NEAR(factor.summary.pivot_growth, 1, 1e-10);
    ASSERT_TRUE(factor.summary.quality.has_value());
    EXPECT_LT(*factor.summary.quality, 10);
  }
}

TEST_P(SparseJobsTest, ReusedAnalysisIsRescaledForValuesThatOverflow) {
  const DType dtype = GetParam();
  const double farthest = dtype == WideOf(dtype) ? 150 : 15;
  const auto with_rows = [&](int step) {
    std::vector<SparseEntry> entries = GridEntries(20, 2);
    const HostMatrix exponents = RandomMatrix(400, 1, step);
    for (SparseEntry& entry : entries) {
      entry.value *= std::pow(10, farthest * exponents[entry.row]);
    }
    return OfType(entries, 400, dtype);
  };
  for (const std::string_view method : MethodsFor(dtype)) {
    for (int step = 2; step < 5; ++step) {
      SCOPED_TRACE(std::string(method) + " " + std::to_string(step));
      const PackedSparse a = with_rows(step);
      GrantingGrowth growth;
      ASSERT_OK_AND_ASSIGN(const Factorization factor,
                           RunByAnalysisOf(with_rows(1).view(), a.view(), method, &growth));
      EXPECT_EQ(factor.summary.info, 0);
      EXPECT_LT(factor.summary.pivot_growth, 1e8);
      ASSERT_TRUE(factor.summary.quality.has_value());
      EXPECT_LT(*factor.summary.quality, 100);
    }
  }
}

TEST_P(SparseJobsTest, Float32FactorsExistAtEveryMagnitude) {
  const DType dtype = GetParam();
  if (dtype != WideOf(dtype)) GTEST_SKIP() << "a matrix in single precision has no such entries";
  const DType single = IsComplex(dtype) ? DType::kComplex64 : DType::kFloat32;
  for (const double magnitude : {1e-200, 1e-60, 1e-46, 1e60, 1e200}) {
    SCOPED_TRACE(magnitude);
    std::vector<SparseEntry> entries = GridEntries(20, 2);
    for (SparseEntry& entry : entries) entry.value *= magnitude;
    const PackedSparse a = OfType(entries, 400, dtype);
    for (const MatchingMode matching : {MatchingMode::kAuto, MatchingMode::kOn}) {
      AnalysisOptions options;
      options.matching = matching;
      options.factor_dtype = single;
      ASSERT_OK_AND_ASSIGN(const Factorization factor,
                           Run(a.view(), options, nullptr, nullptr, true, single));
      EXPECT_EQ(factor.summary.info, 0);
      ASSERT_TRUE(factor.summary.quality.has_value());
      EXPECT_LT(*factor.summary.quality, 10);
    }
    AnalysisOptions unscaled;
    unscaled.matching = MatchingMode::kOff;
    EXPECT_THAT(
        Run(a.view(), unscaled, nullptr, nullptr, true, single),
        FailsWith(absl::StatusCode::kInvalidArgument, magnitude < 1 ? "underflows" : "overflows"));
  }
}

// The matching was computed for other values, and the memory to delay pivots is refused.
TEST_P(SparseJobsTest, RetriesWithoutMatchingAfterGrowth) {
  const double small = std::sqrt(UnitRoundoff(GetParam())) / 100;
  const PackedSparse known = OfType(Weighted(small * small, 3), 400, GetParam());
  const PackedSparse a = OfType(Weighted(5, small), 400, GetParam());
  ASSERT_OK_AND_ASSIGN(Analysis made, Analyze(known.view(), {}, kNeverStop));
  ASSERT_TRUE(made.matched);
  const auto analysis = std::make_shared<const Analysis>(std::move(made));
  ASSERT_OK_AND_ASSIGN(SparseFactorizePlan plan,
                       Plan(a.view(), analysis, std::numeric_limits<size_t>::max()));
  const double most = 1 / std::sqrt(UnitRoundoff(GetParam()));
  RefusingGrowth refusing(1000);
  ASSERT_OK_AND_ASSIGN(const Factorization grown, RunPlan(a.view(), plan, &refusing));
  EXPECT_GT(grown.summary.pivot_growth, most);
  RefusingGrowth growth(1);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, RunPlan(a.view(), plan, &growth));
  EXPECT_FALSE(factor.summary.sparse->analysis->matched);
  EXPECT_LT(factor.summary.pivot_growth, 10);
  EXPECT_LT(*factor.summary.quality, 10);
  plan.options.matching = MatchingMode::kOn;
  RefusingGrowth matched(1);
  ASSERT_OK_AND_ASSIGN(const Factorization as_asked, RunPlan(a.view(), plan, &matched));
  EXPECT_EQ(as_asked.summary.pivot_growth, grown.summary.pivot_growth);
}

// The matching scales this matrix by up to 1e8. The scaled matrix is factored without growth, but
// the factor of the unscaled matrix is inaccurate.
TEST_F(SparseJobsTest, RetriesWithoutMatchingAfterALargeBackwardError) {
  const int64_t side = 31;
  const int64_t n = side * side;
  std::vector<SparseEntry> entries = GridEntries(side, 2);
  for (SparseEntry& entry : entries) {
    entry.value = entry.row == entry.column ? 1e-8 : entry.row < entry.column ? 1 : -1;
  }
  const PackedSparse a = PackEntries(entries, n, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(Analysis made, Analyze(a.view(), {}, kNeverStop));
  ASSERT_TRUE(made.matched);
  const auto analysis = std::make_shared<const Analysis>(std::move(made));
  ASSERT_OK_AND_ASSIGN(SparseFactorizePlan plan,
                       Plan(a.view(), analysis, std::numeric_limits<size_t>::max()));
  GrantingGrowth growth;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, RunPlan(a.view(), plan, &growth));
  EXPECT_FALSE(factor.summary.sparse->analysis->matched);
  EXPECT_LT(*factor.summary.quality, 10);
  plan.options.matching = MatchingMode::kOn;
  GrantingGrowth again;
  ASSERT_OK_AND_ASSIGN(const Factorization matched, RunPlan(a.view(), plan, &again));
  EXPECT_LT(matched.summary.pivot_growth, 1e5);
  EXPECT_GT(*matched.summary.quality, 1e6);
  EXPECT_TRUE(matched.summary.is_poor());
}

// Large scales alone do not make the factor inaccurate, so the matching is kept.
TEST_P(SparseJobsTest, MatchingIsKeptForScaledMatrices) {
  const double large = RealOf(GetParam()) == DType::kFloat64 ? 1e15 : 1e6;
  for (const bool rows : {false, true}) {
    std::vector<SparseEntry> entries = Weighted(0.25, 3);
    for (SparseEntry& entry : entries) {
      const int64_t line = rows ? entry.row : entry.column;
      if (line % 3 != 0) entry.value *= line % 3 == 1 ? large : 1 / large;
    }
    const PackedSparse a = OfType(entries, 400, GetParam());
    ASSERT_OK_AND_ASSIGN(Analysis made, Analyze(a.view(), {}, kNeverStop));
    ASSERT_TRUE(made.matched);
    const auto analysis = std::make_shared<const Analysis>(std::move(made));
    ASSERT_OK_AND_ASSIGN(SparseFactorizePlan plan,
                         Plan(a.view(), analysis, std::numeric_limits<size_t>::max()));
    GrantingGrowth growth;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, RunPlan(a.view(), plan, &growth));
    EXPECT_EQ(factor.summary.sparse->analysis, analysis);
    EXPECT_LT(*factor.summary.quality, 30);
  }
}

TEST_P(SparseJobsTest, RetriesByAnotherMethodAfterGrowth) {
  const DType dtype = GetParam();
  const SparseMethod klu = MethodOf(*DeviceUnderTest(), "klu");
  if (klu.lu == nullptr || !klu.lu->SupportsSparse(dtype))
    GTEST_SKIP() << "there is no other method";
  std::vector<SparseEntry> entries = GridEntries(20, 2);
  for (SparseEntry& entry : entries)
    entry.value = entry.row == entry.column ? 2e-8 : entry.row < entry.column ? 1 : -1;
  const PackedSparse a = OfType(entries, 400, dtype);
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  ASSERT_OK_AND_ASSIGN(Analysis made, Analyze(a.view(), options, kNeverStop));
  const auto analysis = std::make_shared<const Analysis>(std::move(made));
  ASSERT_OK_AND_ASSIGN(SparseFactorizePlan plan,
                       Plan(a.view(), analysis, std::numeric_limits<size_t>::max()));
  RefusingGrowth refusing(1000);
  ASSERT_OK_AND_ASSIGN(const Factorization grown, RunPlan(a.view(), plan, &refusing));
  EXPECT_GT(grown.summary.pivot_growth, 1 / std::sqrt(UnitRoundoff(dtype)));
  plan.options.otherwise = klu;
  RefusingGrowth growth(1000);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, RunPlan(a.view(), plan, &growth));
  EXPECT_EQ(factor.summary.algorithm, "klu");
  EXPECT_LT(factor.summary.pivot_growth, 1e5);
  EXPECT_LT(*factor.summary.quality, 100);
  // If the second method has too little memory, the job returns the factor of the first.
  const UnderestimatingLu method(*klu.lu, DeviceUnderTest()->memory(), /*times=*/0);
  plan.options.otherwise = SparseMethod{&method, klu.solver};
  plan.options.determinant = false;
  RefusingGrowth again(1000);
  ASSERT_OK_AND_ASSIGN(const Factorization kept, RunPlan(a.view(), plan, &again));
  EXPECT_EQ(kept.summary.algorithm, "multifrontal");
  EXPECT_EQ(BitsOf(kept), BitsOf(grown));
}

INSTANTIATE_TEST_SUITE_P(Types, SparseJobsTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::sparse_jobs_test
