// SPDX-License-Identifier: Apache-2.0

// Tests the multifrontal method on the device under test: factors and solves of all types.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <numeric>

#include "kernels/sparse/factor_entries.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/util/sanitizers.h"
#include "tests/kernels/multifrontal/multifrontal_testing.h"
#include "tests/support/matrices/sparse_gallery.h"
#include "tests/support/runners/device_under_test.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::multifrontal_test {
namespace {

class MultifrontalTest
    : public OnDeviceUnderTest<MultifrontalRunner, ::testing::TestWithParam<DType>> {
 protected:
  // Returns the permitted error of a solve without refinement. Growth may cost some digits.
  static double Tolerance(DType dtype) { return 1000 * UnitRoundoff(dtype); }

  // Expects that S x2 = b2 - A21 A11^-1 b1 holds for the kept unknowns x2 of a solve with the whole
  // matrix.
  void ExpectSchurComplement(const PackedSparse& a, const std::vector<int32_t>& keep) {
    const auto kept = static_cast<int64_t>(keep.size());
    AnalysisOptions options;
    options.ordering_program = OrderingProgram();
    ASSERT_OK_AND_ASSIGN(const Factor whole, runner_->Make(a.view(), a.dtype, options));
    options.keep = keep;
    ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), a.dtype, options));
    const Analysis& analysis = factor.analysis;
    ASSERT_EQ(analysis.kept, kept);
    const int64_t last = analysis.fronts() - 1;
    EXPECT_TRUE(std::equal(keep.begin(), keep.end(),
                           analysis.row_order.begin() + analysis.first_position[last]));
    DispatchDType(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      // If b is the unit vector of a kept unknown k, S x2 = e_k.
      const MatrixView<const T> s = FrontAt<const T>(analysis, factor.block.data(), last).panel;
      ASSERT_EQ(s.rows, kept);
      for (const int64_t k : {int64_t{0}, int64_t{13}, kept - 1}) {
        std::vector<T> x(a.n);
        x[keep[k]] = 1;
        EXPECT_OK(runner_->Solve(whole, Op::kNone, MatrixView<T>{x.data(), a.n, 1, a.n}));
        double largest = 0;
        for (int64_t i = 0; i < kept; ++i) {
          WideType<T> sum = i == k ? -1 : 0;
          double size = 1;
          for (int64_t j = 0; j < kept; ++j) {
            const WideType<T> product = ToFloat64(s(i, j)) * ToFloat64(x[keep[j]]);
            sum += product;
            size += std::abs(product);
          }
          largest = std::max(largest, std::abs(sum) / size);
        }
        EXPECT_LT(largest, 1000 * UnitRoundoff(a.dtype));
      }
    });
  }
};

TEST_P(MultifrontalTest, Solves) {
  for (const SparseCase& one : SparseCases()) {
    const PackedSparse a = OfType(one.entries, one.n, GetParam());
    for (const MatchingMode matching : {MatchingMode::kAuto, MatchingMode::kOn}) {
      AnalysisOptions options;
      options.matching = matching;
      ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), GetParam(), options));
      EXPECT_EQ(factor.summary.info, 0);
      for (const Op op : kOps) {
        for (const int64_t k : {1, 3, 37}) {
          if (kSanitized && k > 3 && (op != Op::kNone || matching == MatchingMode::kOn)) continue;
          SCOPED_TRACE(::testing::Message() << one.name << " op " << static_cast<int>(op) << " k "
                                            << k << " matched " << factor.analysis.matched);
          EXPECT_LT(runner_->ErrorOf(factor, a.view(), op, k, 0), Tolerance(GetParam()));
          EXPECT_LT(runner_->ErrorOf(factor, a.view(), op, k, 1), 4 * UnitRoundoff(GetParam()));
        }
      }
    }
  }
}

TEST_P(MultifrontalTest, SolvesMatricesThatNeedTiles) {
  const PackedSparse a = OfType(GridEntries(18, 3), 18 * 18 * 18, GetParam());
  AnalysisOptions options;
  options.ordering_program = OrderingProgram();
  ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), GetParam(), options));
  EXPECT_GT(factor.analysis.largest_front, 200);
  for (const Op op : kOps) {
    EXPECT_LT(runner_->ErrorOf(factor, a.view(), op, 2, 0), Tolerance(GetParam()));
  }
  EXPECT_LT(runner_->ErrorOf(factor, a.view(), Op::kNone, 2, 1), 4 * UnitRoundoff(GetParam()));
}

TEST_P(MultifrontalTest, ReturnsLAndU) {
  for (const SparseCase& one : SparseCases()) {
    if (one.n > 300) continue;
    const PackedSparse a = OfType(one.entries, one.n, GetParam());
    for (const MatchingMode matching : {MatchingMode::kAuto, MatchingMode::kOn}) {
      SCOPED_TRACE(one.name);
      AnalysisOptions options;
      options.matching = matching;
      ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), GetParam(), options));
      DispatchDType(GetParam(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const Analysis& analysis = factor.analysis;
        const FactorEntries<T> entries(analysis, factor.block.data());
        const int64_t n = one.n;
        ComplexMatrix rest(n * n), l(n * n), u(n * n);
        std::vector<int64_t> position(n), column_position(n);
        for (int64_t k = 0; k < n; ++k) {
          position[entries.rows()[k]] = k;
          column_position[analysis.column_order[k]] = k;
        }
        for (int64_t i = 0; i < n; ++i) {
          a.view().As<T>().ForRow(Op::kNone, i, [&](int32_t j, T v) {
            const double scale =
                analysis.row_scale.empty() ? 1 : analysis.row_scale[i] * analysis.column_scale[j];
            rest[position[i] + column_position[j] * n] = std::complex<double>(ToFloat64(v)) * scale;
          });
        }
        int64_t lower = 0, upper = 0;
        entries.VisitLower([&](int64_t i, int64_t j, T v) {
          EXPECT_GT(i, j);
          l[i + j * n] = std::complex<double>(ToFloat64(v));
          ++lower;
        });
        entries.VisitUpper([&](int64_t i, int64_t j, T v) {
          EXPECT_LE(i, j);
          u[i + j * n] = std::complex<double>(ToFloat64(v));
          ++upper;
        });
        EXPECT_EQ(lower, entries.lower_entries());
        EXPECT_EQ(upper, entries.upper_entries());
        double largest_u = 1, largest_rest = 0;
        for (int64_t i = 0; i < n; ++i) l[i + i * n] = 1;
        for (int64_t j = 0; j < n; ++j) {
          for (int64_t k = 0; k <= j; ++k) {
            const std::complex<double> v = u[k + j * n];
            largest_u = std::max(largest_u, std::abs(v));
            if (v == 0.0) continue;
            for (int64_t i = k; i < n; ++i) rest[i + j * n] -= l[i + k * n] * v;
          }
        }
        for (const std::complex<double>& v : rest) {
          largest_rest = std::max(largest_rest, std::abs(v));
        }
        EXPECT_LT(largest_rest, 4.0 * static_cast<double>(std::max<int64_t>(n, 20)) *
                                    UnitRoundoff(GetParam()) * largest_u);
      });
    }
  }
}

TEST_P(MultifrontalTest, ComputesSchurComplements) {
  constexpr int64_t kN = 9 * 9 * 9;
  std::vector<int32_t> keep;
  for (int32_t i = 0; i < 60; ++i) keep.push_back((i * 37 + 5) % kN);
  ExpectSchurComplement(OfType(GridEntries(9, 3), kN, GetParam()), keep);
}

// A solve with kept unknowns uses the identity in place of their Schur complement S. For the
// right-hand side op(A) x - (0, op(S) x2 - x2) it therefore returns x.
TEST_P(MultifrontalTest, SolvesWithKeptUnknowns) {
  constexpr int64_t kM = 9;
  constexpr int64_t kN = kM * kM * kM;
  const PackedSparse a = OfType(GridEntries(kM, 3), kN, GetParam());
  for (const int32_t kept : {1, 60, 300, static_cast<int32_t>(kN)}) {
    AnalysisOptions options;
    for (int32_t i = 0; i < kept; ++i) options.keep.push_back((i * 37 + 5) % kN);
    ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), GetParam(), options));
    const Analysis& analysis = factor.analysis;
    ASSERT_EQ(analysis.kept, kept);
    for (const Op op : kOps) {
      for (const int64_t columns : {1, 3}) {
        SCOPED_TRACE(::testing::Message() << kept << " op " << static_cast<int>(op));
        DispatchDType(GetParam(), [&](auto tag) {
          using T = typename decltype(tag)::type;
          const MatrixView<const T> s =
              FrontAt<const T>(analysis, factor.block.data(), analysis.fronts() - 1).panel;
          const SparseView<T> view = a.view().As<T>();
          std::vector<T> b(kN * columns);
          // Every element of column j of x is j + 1.
          for (int64_t j = 0; j < columns; ++j) {
            const auto x = static_cast<T>(j + 1.0);
            T* const of_j = b.data() + j * kN;
            for (int64_t i = 0; i < kN; ++i) {
              view.ForRow(op, i, [&](int32_t, T v) { of_j[i] += v * x; });
            }
            for (int64_t i = 0; i < kept; ++i) {
              T sum{0};
              for (int64_t k = 0; k < kept; ++k) sum += op == Op::kNone ? s(i, k) : s(k, i);
              if (op == Op::kConjugateTranspose) sum = Conj(sum);
              of_j[options.keep[i]] -= (sum - T{1}) * x;
            }
          }
          EXPECT_OK(runner_->Solve(factor, op, MatrixView<T>{b.data(), kN, columns, kN}));
          double largest = 0;
          for (int64_t e = 0; e < kN * columns; ++e) {
            const double x = static_cast<double>(e / kN) + 1;
            largest = std::max(largest, std::abs(ToFloat64(b[e]) - x));
          }
          EXPECT_LT(largest, 1e4 * UnitRoundoff(GetParam()));
        });
      }
    }
  }
}

// A front of 600 columns with a border of 400, and a front of 1000 columns without a border.
TEST_P(MultifrontalTest, FactorsLargeFronts) {
  constexpr int64_t kN = kSanitized ? 500 : 1000;
  const PackedSparse a = OfType(EntriesOf(RandomMatrix(kN, kN, 5), kN), kN, GetParam());
  std::vector<int32_t> keep(2 * kN / 5);
  std::iota(keep.begin(), keep.end(), kN / 10);
  ExpectSchurComplement(a, keep);
  AnalysisOptions options;
  options.ordering_program = OrderingProgram();
  ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), GetParam(), options));
  ASSERT_EQ(factor.analysis.largest_front, kN);
  EXPECT_GT(factor.summary.interchanges, kN / 2);
  for (const Op op : kOps) {
    EXPECT_LT(runner_->ErrorOf(factor, a.view(), op, 3, 1), 4 * UnitRoundoff(GetParam()));
  }
}

TEST_F(MultifrontalTest, ComputesSchurComplementsOfAllOrNoUnknowns) {
  const PackedSparse a = OfType(GridEntries(3, 2), 9, DType::kFloat64);
  AnalysisOptions options;
  options.keep = {8, 0, 1, 2, 3, 4, 5, 6, 7};
  ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), DType::kFloat64, options));
  const auto s = FrontAt<const double>(factor.analysis, factor.block.data(), 0).panel;
  ASSERT_EQ(s.rows, 9);
  double largest = 0;
  for (int64_t i = 0; i < 9; ++i) {
    std::vector<double> row(9);
    a.view().As<double>().ForRow(Op::kNone, options.keep[i],
                                 [&](int32_t j, double v) { row[j] = v; });
    for (int64_t j = 0; j < 9; ++j) {
      largest = std::max(largest, std::abs(s(i, j) - row[options.keep[j]]));
    }
  }
  EXPECT_EQ(largest, 0);
  for (const std::vector<int32_t>& bad :
       {std::vector<int32_t>{9}, std::vector<int32_t>{-1}, std::vector<int32_t>{1, 1}}) {
    options.keep = bad;
    EXPECT_THAT(Analyze(a.view(), options, kNeverStop),
                FailsWith(absl::StatusCode::kInvalidArgument, "kept"));
  }
}

TEST_F(MultifrontalTest, FactorsInLowerPrecision) {
  const PackedSparse a = OfType(GridEntries(20, 2), 400, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), DType::kFloat32));
  EXPECT_LT(runner_->ErrorOf(factor, a.view(), Op::kNone, 2, 0), 1e-4);
  EXPECT_LT(runner_->ErrorOf(factor, a.view(), Op::kNone, 2, 3), 4e-16);
}

TEST_F(MultifrontalTest, RefusesMatrixThatWasNotAnalyzed) {
  const PackedSparse a = OfType(GridEntries(5, 2), 25, DType::kFloat64);
  const PackedSparse b = OfType(GridEntries(6, 2), 36, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(Factor factor, runner_->Make(a.view(), DType::kFloat64));
  EXPECT_THAT(runner_->Again(b.view(), factor),
              FailsWith(absl::StatusCode::kInvalidArgument, "order 36"));
  factor.dtype = DType::kComplex128;
  EXPECT_THAT(runner_->Again(a.view(), factor),
              FailsWith(absl::StatusCode::kInvalidArgument, "both be real"));
}

TEST_F(MultifrontalTest, ReusesAnalysisForOtherValues) {
  std::vector<SparseEntry> entries = GridEntries(15, 2);
  const PackedSparse a = PackEntries(entries, 225, DType::kFloat64);
  AnalysisOptions options;
  options.matching = MatchingMode::kOn;
  ASSERT_OK_AND_ASSIGN(Factor factor, runner_->Make(a.view(), DType::kFloat64, options));
  for (SparseEntry& entry : entries) entry.value *= 1 + 0.3 * std::sin(entry.row + entry.column);
  const PackedSparse b = PackEntries(entries, 225, DType::kFloat64);
  ASSERT_OK(runner_->Again(b.view(), factor));
  EXPECT_LT(runner_->ErrorOf(factor, b.view(), Op::kNone, 1, 1), 4e-16);
}

TEST_F(MultifrontalTest, StopsAtEveryPoll) {
  const PackedSparse a = OfType(GridEntries(14, 3), 2744, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(Factor factor, runner_->Make(a.view(), DType::kFloat64));
  std::atomic<int> polls = 0;
  ASSERT_OK(runner_->Again(a.view(), factor, [&] { return ++polls < 0; }));
  // The factorization polls at least once per level, and further while it waits.
  const auto total_polls = static_cast<int>(factor.analysis.levels());
  EXPECT_GE(polls, total_polls);
  for (int last = 1; last <= total_polls; ++last) {
    polls = 0;
    EXPECT_THAT(runner_->Again(a.view(), factor, [&] { return ++polls >= last; }),
                FailsWith(absl::StatusCode::kCancelled, "stopped"));
  }
  ASSERT_OK_AND_ASSIGN(factor.summary, runner_->Again(a.view(), factor));
  EXPECT_LT(runner_->ErrorOf(factor, a.view(), Op::kNone, 1, 1), 4e-16);
}

INSTANTIATE_TEST_SUITE_P(Types, MultifrontalTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::multifrontal_test
