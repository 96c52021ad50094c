// SPDX-License-Identifier: Apache-2.0

// Tests jobs for Schur complements of sparse matrices on the device under test, against dense
// elimination and against the host.
#include "kernels/jobs/sparse/sparse_schur.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/host/device/host_device.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/util/sanitizers.h"
#include "kernels/util/status_macros.h"
#include "tests/kernels/jobs/sparse_job_testing.h"
#include "tests/kernels/multifrontal/multifrontal_testing.h"
#include "tests/support/runners/device_under_test.h"

namespace crout::testing::sparse_schur_test {
namespace {

struct Complement {
  ComplexMatrix s;
  FactorSummary factor;
  std::optional<SchurSummary> summary;
};

// Returns `count` distinct indices below n that are not sorted. n must not be divisible by 7.
std::vector<int32_t> Spread(int64_t n, int64_t count) {
  std::vector<int32_t> keep;
  for (int64_t i = 0; i < count; ++i) keep.push_back(static_cast<int32_t>((i * 7 + 3) % n));
  return keep;
}

// Returns S by dense elimination of the other unknowns, with row interchanges among their rows.
ComplexMatrix Eliminated(const PackedSparse& a, const std::vector<int32_t>& keep) {
  const int64_t n = a.n;
  const auto m = std::ssize(keep);
  std::vector<int32_t> order;
  std::vector<bool> kept(n);
  for (const int32_t k : keep) kept[k] = true;
  for (int32_t k = 0; k < n; ++k) {
    if (!kept[k]) order.push_back(k);
  }
  order.insert(order.end(), keep.begin(), keep.end());
  std::vector<int64_t> place(n);
  for (int64_t k = 0; k < n; ++k) place[order[k]] = k;
  ComplexMatrix full(n * n);
  DispatchDType(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < n; ++i) {
      a.view().As<T>().ForRow(Op::kNone, i, [&](int32_t j, T v) {
        full[place[i] + place[j] * n] = std::complex<double>(ToFloat64(v));
      });
    }
  });
  for (int64_t k = 0; k < n - m; ++k) {
    int64_t p = k;
    for (int64_t i = k; i < n - m; ++i) {
      if (std::abs(full[i + k * n]) > std::abs(full[p + k * n])) p = i;
    }
    for (int64_t j = k; j < n; ++j) std::swap(full[k + j * n], full[p + j * n]);
    for (int64_t i = k + 1; i < n; ++i) full[i + k * n] /= full[k + k * n];
    for (int64_t j = k + 1; j < n; ++j) {
      const std::complex<double> u = full[k + j * n];
      if (u == 0.0) continue;
      for (int64_t i = k + 1; i < n; ++i) full[i + j * n] -= full[i + k * n] * u;
    }
  }
  ComplexMatrix s;
  for (int64_t j = n - m; j < n; ++j) {
    for (int64_t i = n - m; i < n; ++i) s.push_back(full[i + j * n]);
  }
  return s;
}

double Largest(const ComplexMatrix& a) {
  double largest = 0;
  for (const std::complex<double>& v : a) largest = std::max(largest, std::abs(v));
  return largest;
}

double Distance(const ComplexMatrix& a, const ComplexMatrix& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t e = 0; e < std::min(a.size(), b.size()); ++e) {
    largest = std::max(largest, std::abs(a[e] - b[e]));
    if (std::isnan(std::abs(a[e] - b[e]))) return std::nan("");
  }
  return largest;
}

class SparseSchurTest : public DeviceUnderTestFixture {
 protected:
  // Computes S on `device` with `context`. `factor_dtype` defaults to the type of A.
  static absl::StatusOr<Complement> ComputeOn(Device& device, ExecutionContext& context,
                                              const PackedSparse& a,
                                              const std::vector<int32_t>& keep,
                                              std::optional<DType> factor_dtype, StopRequested stop,
                                              SparseGrowth* growth = nullptr) {
    AnalysisOptions options;
    options.keep = keep;
    options.ordering_program = OrderingProgram();
    CROUT_ASSIGN_OR_RETURN(Analysis analysis, Analyze(a.view(), options, kNeverStop));
    SparseFactorizeOptions wanted;
    wanted.method = MethodOf(device, "multifrontal");
    wanted.factor_dtype = factor_dtype.value_or(a.dtype);
    CROUT_ASSIGN_OR_RETURN(
        const SparseFactorizePlan factor,
        PlanSparseFactorize(wanted, std::make_shared<const Analysis>(std::move(analysis)), false,
                            a.dtype));
    CROUT_ASSIGN_OR_RETURN(const SparseSchurPlan plan, PlanSparseSchur(factor));
    const size_t before = device.memory_stats().pool_used_bytes;
    absl::StatusOr<Complement> complement = Run(device, context, plan, a, stop, growth);
    EXPECT_EQ(device.memory_stats().pool_used_bytes, before);
    return complement;
  }

  absl::StatusOr<Complement> Compute(const PackedSparse& a, const std::vector<int32_t>& keep,
                                     std::optional<DType> factor_dtype = std::nullopt,
                                     StopRequested stop = kNeverStop,
                                     SparseGrowth* growth = nullptr) {
    return ComputeOn(*DeviceUnderTest(), *context_, a, keep, factor_dtype, stop, growth);
  }

 private:
  static absl::StatusOr<Complement> Run(Device& device, ExecutionContext& context,
                                        const SparseSchurPlan& plan, const PackedSparse& a,
                                        StopRequested stop, SparseGrowth* growth) {
    const size_t before = device.memory_stats().pool_used_bytes;
    CROUT_ASSIGN_OR_RETURN(Buffer upload, Uploaded(context, a.view()));
    std::vector<std::byte> out(plan.complement.bytes(), std::byte{0xff});
    KernelTimings timings;
    CROUT_ASSIGN_OR_RETURN(
        SchurResult result,
        ComputeSparseSchur(context, plan, std::move(upload), out.data(), stop, timings, growth));
    EXPECT_EQ(result.factor.parts.bytes(), 0u);
    EXPECT_EQ(device.memory_stats().pool_used_bytes, before);
    Complement complement{{}, result.factor.summary, result.complement};
    DispatchDType(plan.complement.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto* const s = reinterpret_cast<const T*>(out.data());
      for (int64_t e = 0; e < plan.complement.rows * plan.complement.cols; ++e) {
        complement.s.push_back(std::complex<double>(ToFloat64(s[e])));
      }
    });
    return complement;
  }
};

TEST_P(SparseSchurTest, EqualsDenseEliminationAndTheHost) {
  const auto host = host::MakeDevice({.threads = 2});
  ASSERT_OK_AND_ASSIGN(const auto on_host, host->CreateContext());
  struct Case {
    std::string name;
    int64_t n;
    std::vector<SparseEntry> entries;
  };
  constexpr int64_t kPlane = kSanitized ? 12 : 20;
  constexpr int64_t kRandom = kSanitized ? 80 : 200;
  constexpr int64_t kFull = kSanitized ? 100 : 150;
  const std::vector<Case> cases = {
      {"one", 1, {{0, 0, 3.0}}},
      {"plane 2", 4, GridEntries(2, 2)},
      {"plane 9", 81, GridEntries(9, 2)},
      {"large plane", kPlane * kPlane, GridEntries(kPlane, 2)},
      {"cube 6", 216, GridEntries(6, 3)},
      {"random", kRandom, EntriesOf(RandomSparse(kRandom, 0.02, 3), kRandom)},
      {"full", kFull, EntriesOf(RandomMatrix(kFull, kFull, 4), kFull)}};
  for (const Case& one : cases) {
    const PackedSparse a = OfType(one.entries, one.n, GetParam());
    for (const int64_t kept : {int64_t{1}, int64_t{7}, int64_t{100}, one.n - 1, one.n}) {
      if (kept < 1 || kept > one.n) continue;
      SCOPED_TRACE(::testing::Message() << one.name << ", " << kept << " kept");
      const std::vector<int32_t> keep = Spread(one.n, kept);
      const ComplexMatrix expected = Eliminated(a, keep);
      const double bound = 1000 * UnitRoundoff(GetParam()) * Largest(expected);
      ASSERT_OK_AND_ASSIGN(const Complement found, Compute(a, keep));
      EXPECT_LT(Distance(found.s, expected), bound);
      EXPECT_EQ(found.factor.info, 0);
      EXPECT_EQ(found.factor.n, one.n - kept);
      ASSERT_TRUE(found.summary.has_value());
      EXPECT_LT(found.summary->backward_error, 20 * UnitRoundoff(GetParam()));
      EXPECT_FALSE(found.summary->is_poor);
      ASSERT_OK_AND_ASSIGN(const Complement host_s,
                           ComputeOn(*host, *on_host, a, keep, std::nullopt, kNeverStop));
      EXPECT_LT(Distance(found.s, host_s.s), bound);
      EXPECT_EQ(found.factor.sparse->flops, host_s.factor.sparse->flops);
      EXPECT_EQ(found.factor.sparse->numeric.perturbed_pivots, 0);
    }
  }
}

TEST_P(SparseSchurTest, SingularEliminatedBlockIsReported) {
  // The rows of unknowns 0 and 1 are equal in the block of the eliminated unknowns.
  std::vector<SparseEntry> entries = GridEntries(6, 2);
  for (SparseEntry& entry : entries) {
    entry.row += 2;
    entry.column += 2;
  }
  for (const int32_t i : {0, 1}) {
    for (const int32_t j : {0, 1}) entries.push_back({i, j, 1.0});
    entries.push_back({i, 20, 0.5 - 0.25 * i});
  }
  const std::vector<int32_t> keep = {20, 9, 30};
  // In the second case, a kept row has an entry in the column that has no pivot.
  for (const bool kept_row_has_one : {false, true}) {
    SCOPED_TRACE(kept_row_has_one);
    if (kept_row_has_one) {
      entries.push_back({20, 0, 1.0});
      entries.push_back({20, 1, 2.0});
    }
    const PackedSparse a = OfType(entries, 38, GetParam());
    ASSERT_OK_AND_ASSIGN(const Complement singular, Compute(a, keep));
    EXPECT_GT(singular.factor.info, 0);
    EXPECT_EQ(singular.factor.singular, SingularReason::kZeroPivot);
    EXPECT_LT(singular.factor.sparse->numeric.singular_column, 2);
    EXPECT_FALSE(singular.summary.has_value());
  }
}

TEST_F(SparseSchurTest, PivotsAreMeasuredByTheEliminatedRows) {
  // The entry of the kept row is 1e18 times as large as the only available pivot.
  const std::vector<SparseEntry> entries = {{0, 0, 1e-30}, {0, 1, 1}, {1, 0, 1e-12}, {1, 1, 1e12}};
  const std::vector<int32_t> keep = {1};
  ASSERT_OK_AND_ASSIGN(const Complement found, Compute(OfType(entries, 2, DType::kFloat64), keep));
  EXPECT_EQ(found.factor.sparse->numeric.perturbed_pivots, 0);
  EXPECT_DOUBLE_EQ(found.s[0].real(), 1e12 - 1e18);
}

TEST_F(SparseSchurTest, PerturbedPivotsArePoorWithAnyBackwardError) {
  // The second pivot is 2^-40. The perturbed pivot is four orders of magnitude larger.
  const std::vector<SparseEntry> entries = {{0, 0, 1}, {0, 1, 1}, {1, 0, 1},   {1, 1, 1 + 0x1p-40},
                                            {1, 2, 1}, {2, 1, 1}, {2, 2, 1e12}};
  const std::vector<int32_t> keep = {2};
  ASSERT_OK_AND_ASSIGN(const Complement found, Compute(OfType(entries, 3, DType::kFloat64), keep));
  EXPECT_EQ(found.factor.sparse->numeric.perturbed_pivots, 1);
  EXPECT_LT(found.summary->backward_error, 1e-15);
  EXPECT_TRUE(found.summary->is_poor);
}

// If the range of a singular A11 contains A12, rounding errors determine S without any growth.
TEST_P(SparseSchurTest, SingularBlockWarnsWhereItsRangeContainsTheOthers) {
  const int64_t side = 9;
  const int64_t k = side * side;
  std::vector<double> degree(k);
  std::vector<SparseEntry> entries;
  for (const SparseEntry& entry : GridEntries(side, 2)) {
    if (entry.row == entry.column) continue;
    entries.push_back({entry.row, entry.column, -1.0});
    degree[entry.row] += 1;
  }
  for (int32_t i = 0; i < k; ++i) entries.push_back({i, i, degree[i]});
  const std::vector<SparseEntry> laplacian = entries;
  for (int32_t j = 0; j < 3; ++j) {  // each column of A12 equals a column of A11
    for (const SparseEntry& entry : laplacian) {
      if (entry.column == 11 * j + 5) {
        entries.push_back({entry.row, static_cast<int32_t>(k + j), entry.value});
      }
    }
    entries.push_back({static_cast<int32_t>(k + j), 7 * j + 2, 0.5});
    entries.push_back({static_cast<int32_t>(k + j), static_cast<int32_t>(k + j), 1.0});
  }
  const std::vector<int32_t> keep = {81, 82, 83};
  GrantingGrowth growth;
  ASSERT_OK_AND_ASSIGN(const Complement found, Compute(OfType(entries, k + 3, GetParam()), keep,
                                                       std::nullopt, kNeverStop, &growth));
  EXPECT_TRUE(found.factor.info > 0 || found.factor.is_nearly_singular());
  // Enlarging one diagonal entry makes A11 nonsingular.
  entries.push_back({40, 40, 1.0});
  ASSERT_OK_AND_ASSIGN(const Complement regular, Compute(OfType(entries, k + 3, GetParam()), keep,
                                                         std::nullopt, kNeverStop, &growth));
  EXPECT_FALSE(regular.factor.is_nearly_singular());
}

TEST_P(SparseSchurTest, RegularBlocksDoNotWarn) {
  for (uint64_t seed = 0; seed < 25; ++seed) {
    HostMatrix dense = RandomSparse(90, 0.05, seed);
    for (int64_t i = 0; i < 90; ++i) dense[i * 91] += 6;
    GrantingGrowth growth;
    ASSERT_OK_AND_ASSIGN(const Complement found,
                         Compute(OfType(EntriesOf(dense, 90), 90, GetParam()), Spread(90, 8),
                                 std::nullopt, kNeverStop, &growth));
    EXPECT_FALSE(found.factor.is_nearly_singular()) << seed;
    EXPECT_FALSE(found.summary->is_poor) << seed;
  }
}

// A skew-symmetric matrix with a nearly zero diagonal.
TEST_P(SparseSchurTest, DelayedPivotsAreAccurate) {
  std::vector<SparseEntry> entries = GridEntries(12, 2);
  for (SparseEntry& entry : entries) {
    entry.value = entry.row == entry.column ? 1e-6 : entry.row < entry.column ? 1 : -1;
  }
  const PackedSparse a = OfType(entries, 144, GetParam());
  const std::vector<int32_t> keep = Spread(144, 10);
  ASSERT_OK_AND_ASSIGN(const Complement grown, Compute(a, keep));
  EXPECT_TRUE(grown.summary->is_poor);
  GrantingGrowth growth;
  ASSERT_OK_AND_ASSIGN(const Complement found, Compute(a, keep, std::nullopt, kNeverStop, &growth));
  const ComplexMatrix expected = Eliminated(a, keep);
  EXPECT_LT(Distance(found.s, expected),
            100 * UnitRoundoff(GetParam()) * std::max(1.0, Largest(expected)));
  EXPECT_FALSE(found.summary->is_poor);
  EXPECT_LT(found.summary->backward_error, 100 * UnitRoundoff(GetParam()));
  EXPECT_LT(found.summary->growth, 1e4);
  EXPECT_GT(found.factor.sparse->postponements, 0);
  ASSERT_FALSE(growth.claimed.empty());
}

TEST_F(SparseSchurTest, LowerPrecisionIsUsed) {
  const PackedSparse a = OfType(GridEntries(20, 2), 400, DType::kFloat64);
  const std::vector<int32_t> keep = Spread(400, 30);
  ASSERT_OK_AND_ASSIGN(const Complement found, Compute(a, keep, DType::kFloat32));
  const double distance = Distance(found.s, Eliminated(a, keep));
  EXPECT_LT(distance, 1e-4);
  EXPECT_GT(distance, 1e-10);
  EXPECT_LT(found.summary->backward_error, 20 * UnitRoundoff(DType::kFloat32));
}

// Compute() checks the memory after every stop.
TEST_F(SparseSchurTest, StopsAtEveryPoll) {
  const PackedSparse a = OfType(GridEntries(10, 3), 1000, DType::kFloat64);
  const std::vector<int32_t> keep = Spread(1000, 50);
  // The total number of polls depends on threads and clocks.
  int stopped = 0;
  for (int last = 1;; last += 1 + last / 4) {
    std::atomic<int> polls = 0;
    const auto complement = Compute(a, keep, std::nullopt, [&] { return ++polls >= last; });
    if (complement.ok()) break;
    EXPECT_THAT(complement, FailsWith(absl::StatusCode::kCancelled, "stopped"));
    ++stopped;
  }
  EXPECT_GT(stopped, 4);
}

TEST_F(SparseSchurTest, NonFiniteEntriesAreRefused) {
  std::vector<SparseEntry> entries = GridEntries(6, 2);
  entries[17].value = std::nan("");
  EXPECT_THAT(Compute(PackEntries(entries, 36, DType::kFloat64), {0, 5}),
              FailsWith(absl::StatusCode::kInvalidArgument, "NaN"));
}

INSTANTIATE_TEST_SUITE_P(Types, SparseSchurTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::sparse_schur_test
