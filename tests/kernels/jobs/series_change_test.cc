// SPDX-License-Identifier: Apache-2.0

// Tests series steps that change the matrix of the previous step: by entries, by a low-rank term,
// or by new values on the lines of a text.
#include <complex>
#include <limits>
#include <optional>
#include <vector>

#include "tests/kernels/jobs/series_step_testing.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::series_steps::series_change_test {
namespace {

template <class T>
class SeriesChangeTest : public SeriesStepTest<T> {};

TYPED_TEST_SUITE(SeriesChangeTest, Types);

TYPED_TEST(SeriesChangeTest, AppliesChangesToPreviousMatrix) {
  using T = TypeParam;
  StepRequest request = this->Request();
  request.layout = Layout::kRowMajor;
  auto a = Random<T>(kN, kN, 3);
  ASSERT_OK(this->series_->Step(a, Random<T>(kN, 1, 5), request));
  // The first step changes the matrix of the factor; later steps change the stored matrix.
  for (int step = 0; step < 3; ++step) {
    const auto b = Random<T>(kN, 1, 20 + step);
    const std::vector<T> values = Random<T>(5, 1, 30 + step);
    const std::vector<int32_t> rows = {0, 7, kN - 1, 3, 8};
    const std::vector<int32_t> cols = {0, 7, 2, kN - 1, 8};
    for (size_t k = 0; k < rows.size(); ++k) a[rows[k] + cols[k] * kN] = values[k];
    ASSERT_OK_AND_ASSIGN(const SeriesStepSummary entries,
                         this->series_->ChangedStep({MatrixChange::Kind::kEntries, 5},
                                                    PackTogether(values, rows, cols), b, request));
    EXPECT_TRUE(entries.accurate);
    EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), b, 1), 1.1 * kDefaultAccuracy);

    constexpr int64_t kRank = 2;
    const std::vector<T> u = Random<T>(kN, kRank, 40 + step);
    const std::vector<T> v = Random<T>(kRank, kN, 50 + step);  // V^T, kRank x kN
    for (int64_t j = 0; j < kN; ++j) {
      for (int64_t i = 0; i < kN; ++i) {
        for (int64_t k = 0; k < kRank; ++k) a[i + j * kN] += u[i + k * kN] * v[k + j * kRank];
      }
    }
    ASSERT_OK_AND_ASSIGN(const SeriesStepSummary low_rank,
                         this->series_->ChangedStep({MatrixChange::Kind::kLowRank, kRank},
                                                    PackTogether(u, v), b, request));
    EXPECT_TRUE(low_rank.accurate);
    EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), b, 1), 1.1 * kDefaultAccuracy);
  }
}

// The changes are as large as the matrix, so that the old factor is useless without an update.
TYPED_TEST(SeriesChangeTest, UpdatesFactorUntilRankIsTooLarge) {
  using T = TypeParam;
  constexpr int64_t kRank = 3;
  ASSERT_EQ(MaxUpdateRank(kN), 5 * kRank);
  for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
    StepRequest request = this->Request();
    request.op = op;
    request.update = true;
    Series<T> series(*DeviceUnderTest());
    auto a = Random<T>(kN, kN, 3);
    ASSERT_OK(series.Step(a, Random<T>(kN, kNrhs, 5), request));
    for (int step = 1; step <= 5; ++step) {
      const auto u = Random<T>(kN, kRank, 40 + step);
      const auto v = Random<T>(kRank, kN, 50 + step);
      AddProduct(a, u, v);
      const auto b = Random<T>(kN, kNrhs, 20 + step);
      ASSERT_OK_AND_ASSIGN(const SeriesStepSummary changed,
                           series.ChangedStep({MatrixChange::Kind::kLowRank, kRank},
                                              PackTogether(u, v), b, request));
      EXPECT_TRUE(changed.accurate);
      EXPECT_EQ(changed.update_rank, step * kRank);
      EXPECT_EQ(changed.new_iterations, 0);
      EXPECT_LE(changed.old_iterations, 4);  // the update, and a few corrections
      EXPECT_LE(BackwardError(a, kN, op, series.x(), b, kNrhs), 1.1 * kDefaultAccuracy);
      // A step without a change, with more right-hand sides than before.
      const auto other = Random<T>(kN, kNrhs + 2, 30 + step);
      ASSERT_OK_AND_ASSIGN(const SeriesStepSummary same, series.Step(std::nullopt, other, request));
      EXPECT_EQ(same.update_rank, step * kRank);
      EXPECT_LE(same.old_iterations, 3);
      EXPECT_LE(BackwardError(a, kN, op, series.x(), other, kNrhs + 2), 1.1 * kDefaultAccuracy);
    }
    const auto u = Random<T>(kN, 1, 7);
    const auto v = Random<T>(1, kN, 8);
    AddProduct(a, u, v);
    const auto b = Random<T>(kN, kNrhs, 20);
    request.max_iterations = 5;
    ASSERT_OK_AND_ASSIGN(
        const SeriesStepSummary beyond,
        series.ChangedStep({MatrixChange::Kind::kLowRank, 1}, PackTogether(u, v), b, request));
    EXPECT_EQ(beyond.update_rank, 0);
    EXPECT_EQ(beyond.old_iterations, 5);
    EXPECT_GE(beyond.new_iterations, 1);
    EXPECT_LE(BackwardError(a, kN, op, series.x(), b, kNrhs), 1.1 * kDefaultAccuracy);
    // The next update starts from the new factor.
    AddProduct(a, u, v);
    ASSERT_OK_AND_ASSIGN(
        const SeriesStepSummary again,
        series.ChangedStep({MatrixChange::Kind::kLowRank, 1}, PackTogether(u, v), b, request));
    EXPECT_EQ(again.update_rank, 1);
    EXPECT_EQ(again.new_iterations, 0);
    EXPECT_LE(BackwardError(a, kN, op, series.x(), b, kNrhs), 1.1 * kDefaultAccuracy);
  }
}

TYPED_TEST(SeriesChangeTest, EndsUpdatesAfterChangeOfEntries) {
  using T = TypeParam;
  StepRequest request = this->Request();
  request.update = true;
  auto a = Random<T>(kN, kN, 3);
  const auto b = Random<T>(kN, 1, 5);
  ASSERT_OK(this->series_->Step(a, b, request));
  const auto u = Random<T>(kN, 1, 7);
  const auto v = Random<T>(1, kN, 8);
  const auto low_rank = [&] {
    AddProduct(a, u, v);
    return this->series_->ChangedStep({MatrixChange::Kind::kLowRank, 1}, PackTogether(u, v), b,
                                      request);
  };
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary first, low_rank());
  EXPECT_EQ(first.update_rank, 1);
  const std::vector<T> value = {T(2)};
  a[4 + 5 * kN] = value[0];
  ASSERT_OK_AND_ASSIGN(
      const SeriesStepSummary entry,
      this->series_->ChangedStep(
          {MatrixChange::Kind::kEntries, 1},
          PackTogether(value, std::vector<int32_t>{4}, std::vector<int32_t>{5}), b, request));
  EXPECT_EQ(entry.update_rank, 0);
  EXPECT_EQ(entry.new_iterations, 0);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary last, low_rank());
  EXPECT_EQ(last.update_rank, 0);
  EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), b, 1), 1.1 * kDefaultAccuracy);
}

// A change of rank 1 makes a column zero, and another restores it.
TYPED_TEST(SeriesChangeTest, ReportsUpdateToSingularMatrix) {
  using T = TypeParam;
  StepRequest request = this->Request();
  request.update = true;
  auto a = Random<T>(kN, kN, 3);
  const auto b = Random<T>(kN, 1, 5);
  ASSERT_OK(this->series_->Step(a, b, request));
  std::vector<T> u(a.begin(), a.begin() + kN);
  for (T& entry : u) entry = -entry;
  std::vector<T> v(kN);
  v[0] = 1;
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary singular,
                       this->series_->ChangedStep({MatrixChange::Kind::kLowRank, 1},
                                                  PackTogether(u, v), b, request));
  EXPECT_TRUE(this->series_->made_singular());
  EXPECT_FALSE(singular.solved);
  EXPECT_EQ(singular.update_rank, 0);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary next, this->series_->Step(a, b, request));
  EXPECT_TRUE(next.accurate);
}

TYPED_TEST(SeriesChangeTest, InvalidChangesDoNotChangeTheMatrix) {
  using T = TypeParam;
  const StepRequest request = this->Request();
  const auto a = Random<T>(kN, kN, 3);
  const auto b = Random<T>(kN, 1, 5);
  ASSERT_OK(this->series_->Step(a, b, request));
  const std::vector<T> values = Random<T>(2, 1, 7);
  const auto refused = [&](std::vector<int32_t> rows, std::vector<int32_t> cols,
                           std::vector<T> entries) {
    return this->series_
        ->ChangedStep({MatrixChange::Kind::kEntries, 2}, PackTogether(entries, rows, cols), b,
                      request)
        .status();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(refused({0, -1}, {0, 0}, values), FailsWith(kInvalid, "entry 1"));
  EXPECT_THAT(refused({kN, 0}, {0, 0}, values), FailsWith(kInvalid, "entry 0"));
  EXPECT_THAT(refused({0, 0}, {0, std::numeric_limits<int32_t>::max()}, values),
              FailsWith(kInvalid, "outside"));
  EXPECT_THAT(refused({4, 4}, {5, 5}, values), FailsWith(kInvalid, "another value"));
  EXPECT_THAT(refused({4, 5}, {5, 6}, {values[0], std::numeric_limits<double>::quiet_NaN()}),
              FailsWith(kInvalid, "row 5, column 6"));
  for (const int64_t size : {int64_t{0}, int64_t{-1}, kN * kN + 1, int64_t{1} << 62}) {
    EXPECT_THAT(this->series_->ChangedStep({MatrixChange::Kind::kEntries, size}, {}, b, request),
                FailsWith(kInvalid, "entries"));
  }
  EXPECT_THAT(this->series_->ChangedStep({MatrixChange::Kind::kLowRank, kN + 1}, {}, b, request),
              FailsWith(kInvalid, "ranks"));
  ASSERT_OK(this->series_->Step(std::nullopt, b, request));
  EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), b, 1), 1.1 * kDefaultAccuracy);
}

TYPED_TEST(SeriesChangeTest, RefactorsStoredMatrixIfOldFactorIsUseless) {
  StepRequest request = this->Request();
  const auto a = Random<TypeParam>(kN, kN, 3);
  ASSERT_OK(this->series_->Step(a, Random<TypeParam>(kN, 1, 5), request));
  const auto changed = Changed(a, 1e-3, 9);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary reused,
                       this->series_->Step(changed, Random<TypeParam>(kN, 1, 6), request));
  EXPECT_EQ(reused.new_iterations, 0);
  ASSERT_TRUE(this->series_->matrix());
  request.max_iterations = 1;
  const auto b = Random<TypeParam>(kN, 1, 7);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary,
                       this->series_->Step(std::nullopt, b, request));
  EXPECT_GE(summary.new_iterations, 1);
  EXPECT_TRUE(summary.accurate);
  EXPECT_LE(BackwardError(changed, kN, Op::kNone, this->series_->x(), b, 1),
            1.1 * kDefaultAccuracy);
}

// The lines of a text for the stored elements of `a`, in reverse order. Of every three elements,
// the first is the sum of two lines, and the second is given by a mirrored line.
template <class T>
struct Lines {
  Lines(const std::vector<T>& a, bool sparse) {
    map.mirror_sign = -1;
    map.imaginary_mirror_sign = 1;
    for (size_t p = 0; p < a.size(); ++p) {
      if (a[p] != T{}) elements.push_back(static_cast<int64_t>(p));
    }
    map.elements = sparse ? std::ssize(elements) : std::ssize(a);
    map.lines = map.sources = std::ssize(elements) + (std::ssize(elements) + 2) / 3;
    int64_t line = map.lines;
    size_t next = 0;
    for (int64_t e = 0; e < map.elements; ++e) {
      start.push_back(static_cast<int32_t>(source.size()));
      if (next == elements.size() || (!sparse && elements[next] != e)) continue;
      source.push_back(static_cast<uint32_t>(--line));
      if (next % 3 == 0) {
        source.push_back(static_cast<uint32_t>(--line));
      } else if (next % 3 == 1) {
        source.back() |= ValueMap::kMirrored;
      }
      ++next;
    }
    start.push_back(static_cast<int32_t>(source.size()));
  }

  // Returns values of the lines that give exactly the elements of `a`.
  std::vector<T> Values(const std::vector<T>& a) const {
    std::vector<T> values(map.lines);
    int64_t line = map.lines;
    for (size_t k = 0; k < elements.size(); ++k) {
      const T v = a[elements[k]];
      values[--line] = k % 3 == 0 ? v / 2.0 : v;
      if (k % 3 == 0) values[--line] = v / 2.0;
      if (k % 3 == 1) values[line] = Across(v);
    }
    return values;
  }
  static double Across(double v) { return -v; }
  static std::complex<double> Across(std::complex<double> v) { return {-v.real(), v.imag()}; }

  MatrixChange change() const { return {MatrixChange::Kind::kValues, map.lines, map}; }

  ValueMapShape map;
  std::vector<int64_t> elements;  // offsets in `a`
  std::vector<int32_t> start;
  std::vector<uint32_t> source;
};

TYPED_TEST(SeriesChangeTest, ValuesOnAPatternGiveTheMatrixOfTheText) {
  using T = TypeParam;
  for (const bool sparse : {true, false}) {
    StepRequest request = this->Request();
    request.sparse = sparse;
    std::vector<T> a;
    for (const double x : RandomSparse(kN, 0.1, 3)) a.push_back(x == 0 ? T{} : T{x});
    const auto b = Random<T>(kN, 1, 5);
    const Lines<T> lines(a, sparse);
    Series<T> by_values(*DeviceUnderTest());
    Series<T> in_full(*DeviceUnderTest());
    ASSERT_OK(by_values.Step(a, b, request));
    ASSERT_OK(in_full.Step(a, b, request));
    ASSERT_OK(by_values.KeepMap(PackTogether(lines.start, lines.source)));
    // Solves with the old factor, then with a new one, then with the new one again.
    for (const int iterations : {50, 0, 50}) {
      request.max_iterations = iterations;
      const std::vector<T> random = Random<T>(kN, kN, 70 + iterations);
      for (size_t p = 0; p < a.size(); ++p) a[p] += a[p] * 1e-4 * random[p];
      ASSERT_OK_AND_ASSIGN(
          const SeriesStepSummary summary,
          by_values.ChangedStep(lines.change(), PackTogether(lines.Values(a)), b, request));
      ASSERT_OK(in_full.Step(a, b, request));
      EXPECT_TRUE(summary.accurate);
      EXPECT_EQ(by_values.x(), in_full.x());
      EXPECT_EQ(summary.new_iterations > 0, iterations == 0);
    }
  }
}

TYPED_TEST(SeriesChangeTest, InvalidValuesDoNotChangeTheMatrix) {
  using T = TypeParam;
  StepRequest request = this->Request();
  request.sparse = true;
  std::vector<T> a;
  for (const double x : RandomSparse(kN, 0.1, 3)) a.push_back(x == 0 ? T{} : T{x});
  const auto b = Random<T>(kN, 1, 5);
  Lines<T> lines(a, true);
  ASSERT_OK(this->series_->Step(a, b, request));
  const auto step = [&](const MatrixChange& change, const std::vector<T>& values) {
    return this->series_->ChangedStep(change, PackTogether(values), b, request).status();
  };
  std::vector<T> values = lines.Values(a);
  EXPECT_EQ(step(lines.change(), values).code(), absl::StatusCode::kFailedPrecondition);
  lines.source[0] |= ValueMap::kReal;
  ASSERT_OK(this->series_->KeepMap(PackTogether(lines.start, lines.source)));
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  for (const int64_t count : {int64_t{0}, int64_t{-1}, lines.map.lines + 1, int64_t{1} << 62}) {
    MatrixChange change = lines.change();
    change.size = count;
    EXPECT_THAT(step(change, {}), FailsWith(kInvalid, "values"));
  }
  // A map of another matrix.
  MatrixChange other = lines.change();
  other.map.elements -= 2;
  other.map.sources += 2;
  EXPECT_EQ(step(other, values).code(), absl::StatusCode::kFailedPrecondition);
  values[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(step(lines.change(), values), FailsWith(kInvalid, "matrix"));
  values = lines.Values(a);
  if constexpr (kIsComplex<T>) {
    values.back().imag(1);
    EXPECT_THAT(step(lines.change(), values), FailsWith(kInvalid, "hermitian"));
    values = lines.Values(a);
  }
  ASSERT_OK(step(lines.change(), values));
  EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), b, 1), 1.1 * kDefaultAccuracy);
}

}  // namespace
}  // namespace crout::testing::series_steps::series_change_test
