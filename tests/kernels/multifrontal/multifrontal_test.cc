// SPDX-License-Identifier: Apache-2.0

// Tests the multifrontal method on the device under test: factors and solves of all types, against
// products.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "kernels/sparse/factor_entries.h"
#include "kernels/sparse/ordering_process.h"
#include "tests/kernels/multifrontal/multifrontal_testing.h"
#include "tests/support/device_under_test.h"
#include "tests/support/sparse_gallery.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {
namespace {

constexpr Op kOps[] = {Op::kNone, Op::kTranspose, Op::kConjugateTranspose};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class MultifrontalTest
    : public OnDeviceUnderTest<MultifrontalRunner, ::testing::TestWithParam<DType>> {
 protected:
  // For a solve without refinement. Growth may cost some digits.
  static double Tolerance(DType dtype) { return 1000 * UnitRoundoff(dtype); }

  // Compares S x2 = b2 - A21 A11^-1 b1 with the last unknowns of a solve with the whole system.
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
      // For b = e_k with a kept unknown k, S x2 = e_k.
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
          SCOPED_TRACE(::testing::Message() << one.name << " op " << static_cast<int>(op) << " k "
                                            << k << " matched " << factor.analysis.matched);
          EXPECT_LT(runner_->ErrorOf(factor, a.view(), op, k, 0), Tolerance(GetParam()));
          EXPECT_LT(runner_->ErrorOf(factor, a.view(), op, k, 1), 4 * UnitRoundoff(GetParam()));
        }
      }
    }
  }
}

TEST_P(MultifrontalTest, SolvesWhatIsLargeEnoughForTiles) {
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

TEST_P(MultifrontalTest, GivesLAndU) {
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

TEST_P(MultifrontalTest, ComputesTheDeterminant) {
  constexpr int64_t kN = 9;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const PackedSparse a = OfType(EntriesOf(RandomSparse(kN, 0.4, seed), kN), kN, GetParam());
    // Compared with elimination of the dense form in long double.
    std::vector<std::complex<long double>> dense(kN * kN);
    DispatchDType(GetParam(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < kN; ++i) {
        a.view().As<T>().ForRow(Op::kNone, i, [&](int32_t j, T v) {
          dense[i + j * kN] = std::complex<double>(ToFloat64(v));
        });
      }
    });
    std::complex<long double> det = 1;
    for (int64_t k = 0; k < kN; ++k) {
      int64_t p = k;
      for (int64_t i = k; i < kN; ++i) {
        if (std::abs(dense[i + k * kN]) > std::abs(dense[p + k * kN])) p = i;
      }
      for (int64_t j = 0; j < kN; ++j) std::swap(dense[k + j * kN], dense[p + j * kN]);
      if (p != k) det = -det;
      det *= dense[k + k * kN];
      for (int64_t i = k + 1; i < kN; ++i) {
        const auto l = dense[i + k * kN] / dense[k + k * kN];
        for (int64_t j = k; j < kN; ++j) dense[i + j * kN] -= l * dense[k + j * kN];
      }
    }
    for (const MatchingMode matching : {MatchingMode::kOff, MatchingMode::kOn}) {
      AnalysisOptions options;
      options.matching = matching;
      ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), GetParam(), options));
      ASSERT_OK_AND_ASSIGN(const LogDeterminant log, runner_->Determinant(factor));
      const std::complex<double> ours = log.sign * std::exp(log.log_abs);
      EXPECT_NEAR(std::abs(ours / std::complex<double>(det) - 1.0), 0,
                  1e4 * UnitRoundoff(GetParam()));
    }
  }
}

TEST_P(MultifrontalTest, LeavesSchurComplements) {
  constexpr int64_t kN = 9 * 9 * 9;
  std::vector<int32_t> keep;
  for (int32_t i = 0; i < 60; ++i) keep.push_back((i * 37 + 5) % kN);
  ExpectSchurComplement(OfType(GridEntries(9, 3), kN, GetParam()), keep);
}

// A factor with kept unknowns treats their Schur complement as the identity. Its solve for the
// right-hand side b = op(A) x - (0, op(S) x2 - x2) therefore gives x.
TEST_P(MultifrontalTest, SolvesBesideKeptUnknowns) {
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
  constexpr int64_t kN = 1000;
  const PackedSparse a = OfType(EntriesOf(RandomMatrix(kN, kN, 5), kN), kN, GetParam());
  std::vector<int32_t> keep(400);
  std::iota(keep.begin(), keep.end(), 100);
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

TEST_F(MultifrontalTest, SchurComplementsOfAllOrNoUnknowns) {
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

TEST_F(MultifrontalTest, CountsNegativePivots) {
  // A Laplacian minus a shift. The number of negative pivots is the number of eigenvalues below the
  // shift.
  constexpr int64_t kM = 12;
  for (const double shift : {0.0, 1.23, 4.567}) {
    std::vector<SparseEntry> entries;
    int64_t negative = 0;
    for (int32_t v = 0; v < kM * kM; ++v) {
      entries.push_back({v, v, 4 - shift});
      for (const int32_t w : {v % kM < kM - 1 ? v + 1 : -1, v + static_cast<int32_t>(kM)}) {
        if (w < 0 || w >= kM * kM) continue;
        entries.push_back({v, w, -1.0});
        entries.push_back({w, v, -1.0});
      }
      const auto eigenvalue = [](int64_t k) {
        return 2 - 2 * std::cos(M_PI * static_cast<double>(k + 1) / (kM + 1));
      };
      if (eigenvalue(v % kM) + eigenvalue(v / kM) < shift) ++negative;
    }
    const PackedSparse a = PackEntries(entries, kM * kM, DType::kFloat64);
    AnalysisOptions options;
    options.matching = MatchingMode::kOff;
    ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), DType::kFloat64, options));
    if (factor.summary.interchanges > 0) {
      EXPECT_FALSE(factor.summary.negative_pivots.has_value());
    } else {
      EXPECT_EQ(factor.summary.negative_pivots, negative);
    }
    if (shift == 0) {
      EXPECT_EQ(factor.summary.negative_pivots, 0);
    }
  }
  const PackedSparse general = OfType(GridEntries(5, 2), 25, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(general.view(), DType::kFloat64));
  EXPECT_FALSE(factor.summary.negative_pivots.has_value());
}

TEST_F(MultifrontalTest, PerturbsPivotsThatStayTooSmall) {
  // Without matching, the zeros on the diagonal are in fronts of one column.
  std::vector<SparseEntry> entries;
  constexpr int32_t kN = 60;
  for (int32_t i = 0; i < kN; ++i) {
    entries.push_back({i, i, i % 10 == 0 ? 0.0 : 4.0});
    if (i + 1 < kN) entries.push_back({i, i + 1, 1.0});
    if (i + 1 < kN) entries.push_back({i + 1, i, 1.0});
  }
  const PackedSparse a = PackEntries(entries, kN, DType::kFloat64);
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  options.ordering = OrderingMode::kNatural;
  ASSERT_OK_AND_ASSIGN(const Factor perturbed, runner_->Make(a.view(), DType::kFloat64, options));
  EXPECT_EQ(perturbed.summary.info, 0);
  EXPECT_LT(runner_->ErrorOf(perturbed, a.view(), Op::kNone, 1, 3), 4e-16);
  ASSERT_OK_AND_ASSIGN(const Factor matched, runner_->Make(a.view(), DType::kFloat64));
  EXPECT_TRUE(matched.analysis.matched);
  EXPECT_EQ(matched.summary.perturbed_pivots, 0);
  EXPECT_LT(runner_->ErrorOf(matched, a.view(), Op::kNone, 1, 1), 4e-16);
}

TEST_F(MultifrontalTest, PerturbsAPivotThatNoRowOfItsFrontHas) {
  std::vector<SparseEntry> entries = GridEntries(30, 2);
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  const PackedSparse grid = PackEntries(entries, 900, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(Factor factor, runner_->Make(grid.view(), DType::kFloat64, options));
  EXPECT_EQ(factor.summary.perturbed_pivots, 0);
  // Sets diagonal entries of leaves with one column to zero.
  const Analysis& analysis = factor.analysis;
  std::set<int32_t> zeros;
  for (int64_t f = 0; f < analysis.fronts() && zeros.size() < 3; ++f) {
    if (analysis.eliminated(f) != 1 || analysis.child_start[f] != analysis.child_start[f + 1])
      continue;
    zeros.insert(analysis.row_order[analysis.first_position[f]]);
  }
  ASSERT_EQ(zeros.size(), 3u);
  for (SparseEntry& entry : entries) {
    if (entry.row == entry.column && zeros.count(entry.row) > 0) entry.value = 0;
  }
  const PackedSparse a = PackEntries(entries, 900, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(factor.summary, runner_->Again(a.view(), factor));
  EXPECT_EQ(factor.summary.perturbed_pivots, 3);
  EXPECT_EQ(factor.summary.info, 0);
  EXPECT_GT(factor.summary.pivot_growth, 1e3);
  EXPECT_LT(runner_->ErrorOf(factor, a.view(), Op::kNone, 1, 4), 4e-16);

  // The parents of these leaves have enough rows.
  std::vector<int32_t> postponable;
  ASSERT_OK(runner_->Again(a.view(), factor, kNeverStop, &postponable));
  ASSERT_EQ(postponable.size(), 3u);
  std::vector<int32_t> interchanges;
  const auto read_interchanges = [&](const Factor& from) {
    const auto* const pivots = reinterpret_cast<const int32_t*>(
        from.block.data() + MultifrontalLayout(from.analysis, DType::kFloat64).pivots);
    interchanges.assign(pivots, pivots + 900);
  };
  Factor better = factor;
  for (int round = 0; round < 4 && !postponable.empty(); ++round) {
    read_interchanges(better);
    ASSERT_OK_AND_ASSIGN(better.analysis, Postpone(better.analysis, a.view(), postponable,
                                                   interchanges, options, kNeverStop));
    ASSERT_OK_AND_ASSIGN(better.summary,
                         runner_->Again(a.view(), better, kNeverStop, &postponable));
  }
  EXPECT_LT(better.analysis.flops, 1.1 * factor.analysis.flops);
  EXPECT_EQ(better.summary.perturbed_pivots, 0);
  EXPECT_LT(better.summary.pivot_growth, 1e3);
  for (const Op op : kOps) {
    EXPECT_LT(runner_->ErrorOf(better, a.view(), op, 2, 1), 4e-16);
  }
  // Arguments that do not belong to a factor.
  ASSERT_OK(runner_->Again(a.view(), factor, kNeverStop, &postponable));
  read_interchanges(factor);
  EXPECT_FALSE(Postpone(factor.analysis, grid.view(), std::vector<int32_t>{900}, interchanges,
                        options, kNeverStop)
                   .ok());
  interchanges[postponable[0]] = 7;
  EXPECT_FALSE(
      Postpone(factor.analysis, a.view(), postponable, interchanges, options, kNeverStop).ok());
  EXPECT_FALSE(Postpone(factor.analysis, a.view(), postponable, {}, options, kNeverStop).ok());
}

TEST_F(MultifrontalTest, RaisesPivotsOfLargeFronts) {
  constexpr int64_t kN = 700;
  constexpr int32_t kZero = 650;
  std::vector<SparseEntry> entries = EntriesOf(RandomMatrix(kN, kN, 3), kN);
  for (SparseEntry& entry : entries) {
    if (entry.column == kZero) entry.value = 0;  // stored zeros
  }
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  options.ordering_program = OrderingProgram();
  ASSERT_OK_AND_ASSIGN(
      const Factor factor,
      runner_->Make(PackEntries(entries, kN, DType::kFloat64).view(), DType::kFloat64, options));
  ASSERT_EQ(factor.analysis.largest_front, kN);
  EXPECT_EQ(factor.summary.perturbed_pivots, 1);
  EXPECT_GT(factor.summary.info, 0);
  EXPECT_EQ(factor.summary.singular_column, kZero);
  EXPECT_LT(factor.summary.pivot_growth, 1e3);
}

// There may be a gap between the factors and the interchanges.
bool SameBits(const Factor& one, const Factor& other) {
  const MultifrontalLayout layout(one.analysis, one.dtype);
  const size_t end = one.analysis.factor_entries() * SizeOf(one.dtype);
  return std::memcmp(one.block.data(), other.block.data(), end) == 0 &&
         std::memcmp(one.block.data() + layout.pivots, other.block.data() + layout.pivots,
                     one.analysis.n * sizeof(int32_t)) == 0;
}

TEST_P(MultifrontalTest, GivesTheSameBitsAgain) {
  for (const int64_t m : {6, 18}) {
    const PackedSparse a = OfType(GridEntries(m, 3), m * m * m, GetParam());
    ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), GetParam()));
    Factor other = factor;
    ASSERT_OK(runner_->Again(a.view(), other));
    EXPECT_TRUE(SameBits(factor, other));
  }
}

// Trees of many small fronts, for which whole levels may be processed at once: a chain with more
// levels than that, a star with more children than are looked up at once, and both combined with
// fronts of other sizes.
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

TEST_P(MultifrontalTest, FactorsManySmallFronts) {
  AnalysisOptions options;
  options.ordering = OrderingMode::kNatural;  // preserves the chain and orders the hub last
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
    // complex128 has no small fronts on GPUs, so a few rounds are enough.
    const int rounds = GetParam() == DType::kComplex128 ? 5 : 100;
    Factor again = factor;
    for (int round = 0; round < rounds; ++round) {
      ASSERT_OK(runner_->Again(a.view(), again, kNeverStop, nullptr, &factor));
      ASSERT_TRUE(SameBits(factor, again)) << round;
    }
  }
}

TEST_P(MultifrontalTest, GivesTheSameBitsAfterAnotherMatrix) {
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
    // Then refactors like the previous result.
    Factor third = last;
    ASSERT_OK_AND_ASSIGN(third.summary,
                         runner_->Again(a.view(), third, kNeverStop, nullptr, &like));
    EXPECT_TRUE(SameBits(third, anew));
  }
}

TEST_P(MultifrontalTest, GivesTheSameBitsInLessMemory) {
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
  runner_->UseAtMost(0);
  ASSERT_OK_AND_ASSIGN(const size_t least, runner_->WorkspaceBytes(whole));
  ASSERT_LT(least, most);
  for (const size_t limit : {least, (least + most) / 2, most - 1}) {
    runner_->UseAtMost(limit);
    ASSERT_OK_AND_ASSIGN(const size_t bytes, runner_->WorkspaceBytes(whole));
    SCOPED_TRACE(::testing::Message() << bytes << " of " << most << " bytes, at most " << limit);
    EXPECT_LE(bytes, limit);
    Factor less = whole;
    ASSERT_OK_AND_ASSIGN(less.summary, runner_->Again(a.view(), less));
    EXPECT_TRUE(SameBits(less, whole));
    EXPECT_LT(runner_->ErrorOf(less, a.view(), Op::kNone, 2, 1), 4 * UnitRoundoff(GetParam()));
    // Refactors like a factor made in the same memory, and like one made in more memory. Then
    // refactors in more memory, like the factor made in less.
    for (const Factor* last : {&std::as_const(less), &whole}) {
      Factor next = whole;
      ASSERT_OK(runner_->Again(b.view(), next, kNeverStop, nullptr, last));
      EXPECT_TRUE(SameBits(next, whole_b));
    }
    runner_->UseAtMost(most);
    Factor again = whole;
    ASSERT_OK(runner_->Again(b.view(), again, kNeverStop, nullptr, &less));
    EXPECT_TRUE(SameBits(again, whole_b));
    EXPECT_LT(runner_->ErrorOf(again, b.view(), Op::kTranspose, 2, 1),
              4 * UnitRoundoff(GetParam()));
  }
}

TEST_F(MultifrontalTest, ReportsSingularMatrices) {
  // Rows 3 and 7 are equal, which the pattern does not show.
  constexpr int64_t kN = 12;
  HostMatrix a(kN * kN);
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = 0; i < kN; ++i) a[i + j * kN] = (i * 5 + j * 3) % 7 + (i == j ? 8 : 0);
  }
  for (int64_t j = 0; j < kN; ++j) a[7 + j * kN] = a[3 + j * kN];
  const PackedSparse packed = PackSparse(a, kN, DType::kFloat64);
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(packed.view(), DType::kFloat64, options));
  EXPECT_EQ(factor.summary.perturbed_pivots, 1);
  // An empty row and column.
  const PackedSparse holes =
      PackEntries({{0, 0, 1.0}, {2, 2, 1.0}, {0, 2, 0.5}}, 3, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factor empty, runner_->Make(holes.view(), DType::kFloat64, options));
  EXPECT_GT(empty.summary.info, 0);
  EXPECT_EQ(empty.summary.singular_column, 1);
  ASSERT_OK_AND_ASSIGN(const LogDeterminant determinant, runner_->Determinant(empty));
  EXPECT_EQ(determinant.sign, 0.0);
  const PackedSparse zero = PackSparse(HostMatrix(9), 3, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factor none, runner_->Make(zero.view(), DType::kFloat64, options));
  EXPECT_EQ(none.summary.info, 1);
}

TEST_F(MultifrontalTest, ReportsNonFiniteFactors) {
  PackedSparse a = OfType(GridEntries(12, 2), 144, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(Factor factor, runner_->Make(a.view(), DType::kFloat64));
  EXPECT_LT(factor.summary.pivot_growth, 2);
  for (const double bad : {std::nan(""), kInfinity}) {
    const SparseLayout at(a.n, a.nonzeros, a.dtype);
    std::memcpy(a.bytes.data() + at.value + 100 * sizeof(double), &bad, sizeof(double));
    ASSERT_OK_AND_ASSIGN(const NumericSummary summary, runner_->Again(a.view(), factor));
    EXPECT_EQ(summary.pivot_growth, kInfinity);
  }
}

TEST_F(MultifrontalTest, RefusesAnotherMatrix) {
  const PackedSparse a = OfType(GridEntries(5, 2), 25, DType::kFloat64);
  const PackedSparse b = OfType(GridEntries(6, 2), 36, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(Factor factor, runner_->Make(a.view(), DType::kFloat64));
  EXPECT_THAT(runner_->Again(b.view(), factor),
              FailsWith(absl::StatusCode::kInvalidArgument, "order 36"));
  factor.dtype = DType::kComplex128;
  EXPECT_THAT(runner_->Again(a.view(), factor),
              FailsWith(absl::StatusCode::kInvalidArgument, "both be real"));
}

TEST_F(MultifrontalTest, FactorsOtherValuesWithOneAnalysis) {
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
  std::atomic<int> asked = 0;
  ASSERT_OK(runner_->Again(a.view(), factor, [&] { return ++asked < 0; }));
  // Polls at least once per level before waiting, and any number of times while waiting.
  const auto questions = static_cast<int>(factor.analysis.levels());
  EXPECT_GE(asked, questions);
  for (int last = 1; last <= questions; ++last) {
    asked = 0;
    EXPECT_THAT(runner_->Again(a.view(), factor, [&] { return ++asked >= last; }),
                FailsWith(absl::StatusCode::kCancelled, "stopped"));
  }
  ASSERT_OK_AND_ASSIGN(factor.summary, runner_->Again(a.view(), factor));
  EXPECT_LT(runner_->ErrorOf(factor, a.view(), Op::kNone, 1, 1), 4e-16);
}

INSTANTIATE_TEST_SUITE_P(Types, MultifrontalTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing
