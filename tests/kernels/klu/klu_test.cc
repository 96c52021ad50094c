// SPDX-License-Identifier: Apache-2.0

// Tests KLU as a method for sparse matrices: factors and solves in memory provided by the caller.
#include "kernels/host/klu/klu.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <iostream>
#include <limits>
#include <map>
#include <thread>

#include "kernels/host/klu/arena.h"
#include "kernels/host/multifrontal/multifrontal.h"
#include "kernels/stop_requested.h"
#include "kernels/util/sanitizers.h"
#include "tests/kernels/sparse_lu_testing.h"
#include "tests/support/matrices/matrices.h"

namespace crout::testing::klu_test {
namespace {

constexpr auto kNeverStop = [] { return false; };
constexpr double kUnit = 0x1p-53;
constexpr size_t kAlignment = 64;

// Memory filled with 0xff, aligned to 64 bytes like memory of a device.
class Block {
 public:
  explicit Block(size_t bytes) : memory_(bytes + kAlignment, std::byte{0xff}), bytes_(bytes) {}
  Block() : Block(0) {}

  std::span<std::byte> span() {
    void* at = memory_.data();
    size_t room = memory_.size();
    std::align(kAlignment, bytes_, at, room);
    return {static_cast<std::byte*>(at), bytes_};
  }

 private:
  std::vector<std::byte> memory_;
  size_t bytes_;
};

struct Factor {
  Analysis analysis;
  NumericSummary summary;
  Block block;
  DType dtype;
};

absl::Status FactorAgain(const AnySparse& a, Factor& factor, StopRequested stop = kNeverStop) {
  Block workspace(host::KluWorkspaceBytes(factor.analysis, factor.dtype));
  const auto summary = host::FactorKlu(factor.analysis, a, factor.dtype, factor.block.span(),
                                       workspace.span(), stop);
  if (!summary.ok()) return summary.status();
  factor.summary = *summary;
  return absl::OkStatus();
}

absl::StatusOr<Factor> MakeFactor(const AnySparse& a, const AnalysisOptions& options = {}) {
  Factor factor;
  factor.dtype = WideOf(a.dtype);
  absl::StatusOr<Analysis> analysis = Analyze(a, options, kNeverStop);
  if (!analysis.ok()) return analysis.status();
  factor.analysis = *std::move(analysis);
  const absl::StatusOr<size_t> bytes = host::KluFactorBytes(factor.analysis, factor.dtype);
  if (!bytes.ok()) return bytes.status();
  factor.block = Block(*bytes);
  const absl::Status status = FactorAgain(a, factor);
  if (!status.ok()) return status;
  return factor;
}

absl::Status SolveWith(Factor& factor, Op op, const AnyMatrix& b) {
  Block workspace(host::KluSolveWorkspaceBytes(factor.analysis, factor.dtype));
  return host::SolveKlu(factor.analysis, factor.block.span(), op, b, workspace.span());
}

double ErrorOf(Factor& factor, const AnySparse& a, Op op, int64_t k, int refinements) {
  return ErrorAfter(a, factor.dtype, op, k, refinements,
                    [&](const AnyMatrix& b) { return SolveWith(factor, op, b); });
}

class KluTest : public ::testing::TestWithParam<DType> {};

TEST_P(KluTest, Solves) {
  for (const SparseCase& one : SparseCases()) {
    const PackedSparse a = OfType(one.entries, one.n, GetParam());
    for (const MatchingMode matching : {MatchingMode::kAuto, MatchingMode::kOn}) {
      AnalysisOptions options;
      options.matching = matching;
      ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(a.view(), options));
      EXPECT_EQ(factor.summary.info, 0);
      EXPECT_EQ(factor.summary.perturbed_pivots, 0);
      EXPECT_GE(factor.summary.pivot_growth, 0);
      EXPECT_LT(factor.summary.pivot_growth, 1e6);
      for (const Op op : kOps) {
        for (const int64_t k : {1, 3, 4, 37}) {
          SCOPED_TRACE(::testing::Message() << one.name << " op " << static_cast<int>(op) << " k "
                                            << k << " matched " << factor.analysis.matched);
          // Without refinement the error is large: a pivot may be a thousandth of the entries that
          // it eliminates.
          EXPECT_LT(ErrorOf(factor, a.view(), op, k, 0), 1e5 * kUnit);
          EXPECT_LT(ErrorOf(factor, a.view(), op, k, 1), 4 * kUnit);
        }
      }
    }
  }
}

TEST_P(KluTest, RefactorsWithStoredPivots) {
  for (const SparseCase& one : SparseCases()) {
    SCOPED_TRACE(one.name);
    const PackedSparse a = OfType(one.entries, one.n, GetParam());
    std::vector<SparseEntry> changed = one.entries;
    for (size_t e = 0; e < changed.size(); ++e) {
      changed[e].value *= 1 + 0.01 * static_cast<double>(e % 5);
    }
    const PackedSparse next = OfType(changed, one.n, GetParam());
    ASSERT_OK_AND_ASSIGN(Factor first, MakeFactor(a.view()));
    Factor second{first.analysis, {}, Block(first.block.span().size()), first.dtype};
    Block workspace(host::KluWorkspaceBytes(first.analysis, first.dtype));
    ASSERT_OK_AND_ASSIGN(
        const std::optional<NumericSummary> summary,
        host::RefactorKlu(first.analysis, next.view(), first.dtype, first.block.span(),
                          second.block.span(), workspace.span(), kNeverStop));
    EXPECT_EQ(summary.has_value(), one.n > 0);
    if (!summary) continue;
    EXPECT_EQ(summary->info, 0);
    EXPECT_EQ(summary->interchanges, first.summary.interchanges);
    EXPECT_EQ(summary->counts->lower, first.summary.counts->lower);
    EXPECT_EQ(summary->counts->upper, first.summary.counts->upper);
    first.block = Block();  // the new factor does not use the old one
    EXPECT_LT(ErrorOf(second, next.view(), Op::kNone, 3, 1), 4 * kUnit);
    EXPECT_LT(ErrorOf(second, next.view(), Op::kTranspose, 3, 1), 4 * kUnit);
  }
}

TEST(KluPivotsTest, RejectsUnsuitableStoredPivots) {
  const auto of = [](double corner) {
    return PackEntries({{0, 0, corner}, {0, 1, 1}, {1, 0, 1}, {1, 1, 1}}, 2, DType::kFloat64);
  };
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  ASSERT_OK_AND_ASSIGN(Factor first, MakeFactor(of(3).view(), options));
  Block block(first.block.span().size());
  Block workspace(host::KluWorkspaceBytes(first.analysis, first.dtype));
  for (const double corner : {0.0, 1e-9, 1.0}) {
    ASSERT_OK_AND_ASSIGN(
        const auto summary,
        host::RefactorKlu(first.analysis, of(corner).view(), first.dtype, first.block.span(),
                          block.span(), workspace.span(), kNeverStop));
    // If corner is 1, the second pivot is zero. The analysis decides whether corner is the first
    // pivot.
    EXPECT_FALSE(summary && corner == 1);
    EXPECT_FALSE(summary && summary->pivot_growth > host::kMaxKluGrowth);
  }
}

TEST_P(KluTest, AgreesWithMultifrontalOnTheDeterminant) {
  host::Executor executor(1);
  const DType wide = WideOf(GetParam());
  for (const SparseCase& one : SparseCases()) {
    SCOPED_TRACE(one.name);
    const PackedSparse a = OfType(one.entries, one.n, GetParam());
    ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(a.view()));
    const LogDeterminant ours =
        host::KluDeterminant(factor.analysis, factor.summary, factor.block.span(), wide);
    Block theirs(host::MultifrontalFactorBytes(factor.analysis, wide));
    Block workspace(host::MultifrontalWorkspaceBytes(executor, factor.analysis, wide));
    ASSERT_OK_AND_ASSIGN(const NumericSummary summary,
                         host::FactorMultifrontal(executor, factor.analysis, a.view(), wide,
                                                  theirs.span(), workspace.span(), kNeverStop));
    const LogDeterminant expected =
        host::MultifrontalDeterminant(factor.analysis, summary, theirs.span(), wide);
    EXPECT_NEAR(std::abs(ours.sign - expected.sign), 0, 1e-10);
    EXPECT_NEAR(ours.log_abs, expected.log_abs, 1e-10 * (1 + std::abs(expected.log_abs)));
  }
}

TEST_P(KluTest, SolvesWithMovedFactor) {
  const PackedSparse a = OfType(GridEntries(30, 2), 900, GetParam());
  ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(a.view()));
  Block moved(factor.block.span().size());
  std::memcpy(moved.span().data(), factor.block.span().data(), moved.span().size());
  std::memset(factor.block.span().data(), 0xff, factor.block.span().size());
  factor.block = std::move(moved);
  for (const Op op : kOps) EXPECT_LT(ErrorOf(factor, a.view(), op, 5, 1), 4 * kUnit);
}

TEST_P(KluTest, GivesTheSameBitsForOneOrManyColumns) {
  const PackedSparse a = OfType(GridEntries(30, 2), 900, GetParam());
  ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(a.view()));
  constexpr int64_t kColumns = 7;
  const size_t column = 900 * SizeOf(factor.dtype);
  const ComplexMatrix b = RightHandSides(900, kColumns, DType::kFloat64);
  std::vector<std::byte> together(kColumns * column);
  DispatchDType(factor.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t e = 0; e < 900 * kColumns; ++e) {
      reinterpret_cast<T*>(together.data())[e] = ConvertTo<T>(b[e].real());
    }
  });
  std::vector<std::byte> apart = together;
  ASSERT_OK(SolveWith(factor, Op::kNone, {together.data(), factor.dtype, 900, kColumns, 900}));
  // Factors again, then solves for each column on a separate thread.
  ASSERT_OK(FactorAgain(a.view(), factor));
  std::vector<std::thread> threads;
  std::vector<absl::Status> statuses(kColumns);
  for (int64_t j = 0; j < kColumns; ++j) {
    threads.emplace_back([&, j] {
      statuses[j] =
          SolveWith(factor, Op::kNone, {apart.data() + j * column, factor.dtype, 900, 1, 900});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) EXPECT_OK(status);
  EXPECT_EQ(apart, together);
}

TEST_P(KluTest, ReportsSingularMatrices) {
  // The last row is twice the first row.
  std::vector<SparseEntry> entries = {{0, 0, 1.0}, {0, 2, 3.0}, {1, 1, 5.0},
                                      {2, 0, 2.0}, {2, 2, 6.0}, {1, 2, 1.0}};
  const PackedSparse a = PackEntries(entries, 3, GetParam());
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(a.view(), options));
  EXPECT_GT(factor.summary.info, 0);
  EXPECT_LE(factor.summary.info, 3);
  EXPECT_GE(factor.summary.singular_column, 0);
  EXPECT_EQ(
      host::KluDeterminant(factor.analysis, factor.summary, factor.block.span(), factor.dtype).sign,
      std::complex<double>(0));
  std::vector<std::byte> b(3 * SizeOf(factor.dtype));
  EXPECT_THAT(SolveWith(factor, Op::kNone, {b.data(), factor.dtype, 3, 1, 3}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "singular"));
}

TEST_P(KluTest, ReportsAStructurallySingularMatrix) {
  const std::vector<SparseEntry> entries = {{0, 0, 1.0}, {1, 0, 3.0}, {2, 1, 1.0}, {2, 2, 1.0}};
  const PackedSparse a = PackEntries(entries, 3, GetParam());
  ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(a.view(), {}, kNeverStop));
  EXPECT_GE(analysis.unmatched_row, 0);
  Block any(1 << 12), workspace(1 << 12);
  EXPECT_THAT(host::FactorKlu(analysis, a.view(), WideOf(GetParam()), any.span(), workspace.span(),
                              kNeverStop),
              FailsWith(absl::StatusCode::kInvalidArgument, "structurally"));
}

TEST_P(KluTest, RefusesMatrixThatWasNotAnalyzed) {
  const PackedSparse a = OfType(GridEntries(5, 2), 25, GetParam());
  const PackedSparse other = OfType(GridEntries(6, 2), 36, GetParam());
  ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(a.view()));
  EXPECT_THAT(FactorAgain(other.view(), factor),
              FailsWith(absl::StatusCode::kInvalidArgument, "the analyzed matrix has order"));
}

TEST_P(KluTest, StopsDuringFactorization) {
  constexpr int64_t kM = 12;
  const PackedSparse a = OfType(GridEntries(kM, 3), kM * kM * kM, GetParam());
  ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(a.view()));
  int polls = 0;
  ASSERT_OK(FactorAgain(a.view(), factor, [&] {
    ++polls;
    return false;
  }));
  // KLU polls whenever the factor has grown by a few entries per column.
  EXPECT_GT(polls, factor.analysis.factor_entries() / (8 * factor.analysis.n));
  const int all = polls;
  polls = 0;
  EXPECT_THAT(FactorAgain(a.view(), factor, [&] { return ++polls == all / 2; }),
              FailsWith(absl::StatusCode::kCancelled, "numeric"));
  EXPECT_EQ(polls, all / 2) << "it went on";
}

TEST_P(KluTest, StopsDuringRefactorization) {
  constexpr int64_t kM = 12;
  const PackedSparse a = OfType(GridEntries(kM, 3), kM * kM * kM, GetParam());
  ASSERT_OK_AND_ASSIGN(Factor first, MakeFactor(a.view()));
  Block block(first.block.span().size());
  Block workspace(host::KluWorkspaceBytes(first.analysis, first.dtype));
  int polls = 0;
  const auto refactor = [&](int stops_at) {
    polls = 0;
    return host::RefactorKlu(first.analysis, a.view(), first.dtype, first.block.span(),
                             block.span(), workspace.span(), [&] { return ++polls == stops_at; });
  };
  ASSERT_OK(refactor(0).status());
  const int all = polls;
  // RefactorKlu polls at least once per kStepsBetweenStops products, which are half of the
  // operations.
  EXPECT_GE(all, first.analysis.flops / (4 * StopCounter::kStepsBetweenStops));
  ASSERT_GE(all, 2);
  for (const int k : {1, all}) {
    EXPECT_THAT(refactor(k), FailsWith(absl::StatusCode::kCancelled, "stopped"));
    EXPECT_EQ(polls, k) << "it went on";
  }
}

// A matrix with tiny diagonal entries, so that KLU chooses pivots off the diagonal.
std::vector<SparseEntry> SmallDiagonal(int64_t m) {
  std::vector<SparseEntry> entries = GridEntries(m, 2);
  for (SparseEntry& entry : entries) {
    if (entry.row == entry.column) entry.value = 1e-9;
  }
  return entries;
}

TEST_P(KluTest, ChoosesPivotsOffTheDiagonal) {
  const PackedSparse a = OfType(SmallDiagonal(20), 400, GetParam());
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(a.view(), options));
  EXPECT_GT(factor.summary.interchanges, 100);
  for (const Op op : kOps) EXPECT_LT(ErrorOf(factor, a.view(), op, 2, 1), 4 * kUnit);
}

TEST_P(KluTest, StaysWithinItsMemoryBlock) {
  const PackedSparse a = OfType(SmallDiagonal(20), 400, GetParam());
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(a.view(), options));
  const size_t enough = factor.block.span().size();
  Block workspace(host::KluWorkspaceBytes(factor.analysis, factor.dtype));
  int refused = 0;
  for (size_t bytes = 256; bytes < enough; bytes += enough / 37) {
    factor.block = Block(enough);
    std::vector<std::byte> rest(enough - bytes, std::byte{0xff});
    const auto summary =
        host::FactorKlu(factor.analysis, a.view(), factor.dtype, factor.block.span().first(bytes),
                        workspace.span(), kNeverStop);
    if (!summary.ok()) {
      ++refused;
      EXPECT_THAT(summary, FailsWith(absl::StatusCode::kResourceExhausted, "multifrontal"));
      std::vector<std::byte> b(400 * SizeOf(factor.dtype));
      EXPECT_FALSE(SolveWith(factor, Op::kNone, {b.data(), factor.dtype, 400, 1, 400}).ok());
    }
    EXPECT_EQ(std::memcmp(factor.block.span().data() + bytes, rest.data(), rest.size()), 0);
  }
  EXPECT_GT(refused, 5);
}

INSTANTIATE_TEST_SUITE_P(Types, KluTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

TEST(KluMatricesTest, FactorsAndSolves) {
  if (!MatricesDirectory()) {
    GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES (ALL TESTS SKIPPED)";
  }
  constexpr int64_t kLargest = kSanitized ? 500 : 2000;
  constexpr double kHuge = 1e12;  // condition number above which A may be found singular
  std::map<std::string, int> of_sequence;
  int checked = 0, structural = 0, singular = 0, interchanged = 0;
  for (const RealMatrix& real : RealMatrixIndex()) {
    if (real.n > kLargest) continue;
    const bool sequence = real.file.rfind("seq_", 0) == 0;
    if (sequence && ++of_sequence[real.file.substr(0, real.file.rfind('/'))] > 3) continue;
    SCOPED_TRACE(real.file);
    const absl::StatusOr<std::vector<SparseEntry>> entries = ReadSparseMatrix(real);
    if (!entries.ok()) continue;  // not square
    const PackedSparse a = PackEntries(
        *entries, real.n, real.field == "complex" ? DType::kComplex128 : DType::kFloat64);
    ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(a.view(), {}, kNeverStop));
    ++checked;
    const bool regular = real.condition > 0 && real.condition < kHuge;
    if (analysis.unmatched_row >= 0) {
      ++structural;
      EXPECT_FALSE(regular) << real.note;
      continue;
    }
    ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(a.view()));
    interchanged += factor.summary.interchanges > 0;
    if (factor.summary.info > 0) {
      ++singular;
      EXPECT_FALSE(regular) << real.note;
      continue;
    }
    if (!regular) continue;
    for (const Op op : {Op::kNone, Op::kConjugateTranspose}) {
      EXPECT_LT(ErrorOf(factor, a.view(), op, 1, 1), 1e-15);
    }
  }
  std::cout << checked << " matrices, " << structural << " structurally singular, " << singular
            << " singular, " << interchanged << " with pivots off the diagonal\n";
  EXPECT_GT(checked, 100);
}

TEST(KluTest, RefusesFactorsTooLargeForItsIndices) {
  // The analyses contain only counts. KLU's memory is estimated for 1.5 times the entries, in units
  // of an entry; the number of units must fit in an int.
  for (const DType dtype : {DType::kFloat64, DType::kComplex128}) {
    const double units = 1.5 * (1 + sizeof(int) / static_cast<double>(SizeOf(dtype)));
    Analysis analysis;
    analysis.n = 10'000'000;
    analysis.factor_start = {0, static_cast<int64_t>((0x1p31 - 2e8) / units)};
    EXPECT_OK(host::KluFactorBytes(analysis, dtype));
    analysis.factor_start = {0, static_cast<int64_t>(0x1p31 / units)};
    EXPECT_THAT(host::KluFactorBytes(analysis, dtype),
                FailsWith(absl::StatusCode::kUnimplemented, "exceeds the 32-bit indices"));
    analysis.factor_start = {0, int64_t{1} << 40};
    EXPECT_THAT(host::KluFactorBytes(analysis, dtype),
                FailsWith(absl::StatusCode::kUnimplemented, "exceeds the 32-bit indices"));
  }
}

TEST(KluArenaTest, AllocatesConsecutivePieces) {
  Block memory(256);
  const std::span<std::byte> span = memory.span();
  bool stop = false;
  const auto stop_requested = [&] { return stop; };
  host::KluArena arena(span, stop_requested);
  void* const first = arena.Allocate(10);
  EXPECT_EQ(first, span.data());
  void* const second = arena.Allocate(1);
  EXPECT_EQ(second, span.data() + 16);
  EXPECT_EQ(arena.Reallocate(first, 12), nullptr);
  EXPECT_EQ(arena.Reallocate(second, 240), second);
  EXPECT_EQ(arena.Reallocate(second, 241), nullptr);
  EXPECT_FALSE(arena.stopped());
  EXPECT_EQ(arena.Allocate(1), nullptr);
  EXPECT_EQ(arena.Allocate(std::numeric_limits<size_t>::max()), nullptr);
  arena.Free(second);
  EXPECT_EQ(arena.used(), 16u);
  EXPECT_TRUE(arena.Holds(first));
  EXPECT_FALSE(arena.Holds(&arena));
  EXPECT_FALSE(arena.Holds(span.data() + span.size()));
  EXPECT_EQ(arena.Reallocate(second, 10), second);
  stop = true;
  EXPECT_EQ(arena.Reallocate(second, 10), nullptr);
  EXPECT_TRUE(arena.stopped());
}

}  // namespace
}  // namespace crout::testing::klu_test
