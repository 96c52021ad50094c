// Steps of a series: with the old factor as long as that serves, with a new one where it does not.
#include "kernels/jobs/series_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "tests/support/device_under_test.h"
#include "tests/support/fake_device.h"
#include "tests/support/job_runner.h"
#include "tests/support/packed_sparse.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {
namespace {

constexpr int64_t kN = 60;
constexpr int64_t kNrhs = 2;
constexpr double kRoundoff = 0x1p-53;
const double kDefaultAccuracy = std::sqrt(static_cast<double>(kN)) * kRoundoff;

struct StepRequest {
  DType matrix_dtype = DType::kFloat64;
  DType factor_dtype = DType::kFloat64;
  DType rhs_dtype = DType::kFloat64;
  Layout layout = Layout::kColumnMajor;
  bool sparse = false;
  Op op = Op::kNone;
  double accuracy = 0;
  int most_iterations = 100;
  bool update = false;
};

// A series on one context, which keeps what the server would.
template <class T>
class Series {
 public:
  using Matrix = std::vector<T>;

  explicit Series(Device& device) : device_(device), runner_(device) {}

  // With no `a`: that of the last step.
  absl::StatusOr<SeriesStepSummary> Step(const std::optional<Matrix>& a, const Matrix& b,
                                         const StepRequest& request,
                                         StopRequested stop = JobRunner::NeverStop()) {
    auto plan = Plan(a, std::nullopt, static_cast<int64_t>(b.size()) / kN, request);
    if (!plan.ok()) return plan.status();
    if (!a) return Run(*plan, {}, b, request, stop);
    return Run(*plan,
               request.sparse ? PackSparse(*a, kN, request.matrix_dtype).bytes
                              : Packed(*a, kN, kN, request.matrix_dtype, request.layout),
               b, request, stop);
  }

  // With that of the last step, changed by what `arriving` says.
  absl::StatusOr<SeriesStepSummary> ChangedStep(const MatrixChange& change,
                                                const std::vector<std::byte>& arriving,
                                                const Matrix& b, const StepRequest& request) {
    auto plan = Plan(std::nullopt, change, static_cast<int64_t>(b.size()) / kN, request);
    if (!plan.ok()) return plan.status();
    return Run(*plan, arriving, b, request, JobRunner::NeverStop());
  }

  // The block of the map that changes by values go by, as the server would keep it.
  absl::Status KeepMap(const std::vector<std::byte>& block) {
    auto arrived = runner_.Upload(block);
    if (!arrived.ok()) return arrived.status();
    map_.emplace().parts.Add(kValueMapPart, PartKind::kOperand, *std::move(arrived));
    return absl::OkStatus();
  }

  const Matrix& x() const { return x_; }
  const std::optional<Factorization>& factor() const { return factor_; }
  const std::optional<Factorization>& matrix() const { return matrix_; }
  bool made_singular() const { return made_singular_; }
  const JobBytes& bytes() const { return bytes_; }  // as the last step was planned
  size_t kept_bytes() const {
    size_t sum = 0;
    for (const auto* kept : {&factor_, &matrix_, &solution_}) {
      if (*kept) sum += (*kept)->parts.bytes();
    }
    return sum;
  }

 private:
  absl::StatusOr<SeriesStepSummary> Run(const SeriesStepPlan& plan,
                                        const std::vector<std::byte>& arriving, const Matrix& b,
                                        const StepRequest& request, StopRequested stop) {
    Buffer matrix;
    if (!arriving.empty()) {
      auto upload = runner_.Upload(arriving);
      if (!upload.ok()) return upload.status();
      matrix = *std::move(upload);
    }
    auto rhs = runner_.Upload(Packed(b, kN, plan.rhs.cols, request.rhs_dtype, request.layout));
    if (!rhs.ok()) return rhs.status();
    std::vector<std::byte> out(plan.delivered.bytes());
    const auto there = [](const std::optional<Factorization>& kept) {
      return kept ? &*kept : nullptr;
    };
    const SeriesStart start{there(factor_), there(matrix_), there(solution_), there(map_)};
    auto result = SolveSeriesStep(runner_.context(), plan, start, std::move(matrix),
                                  *std::move(rhs), out.data(), stop, runner_.timings());
    if (!result.ok()) return result.status();
    bytes_ = plan.bytes;
    made_singular_ = result->factor && result->factor->summary.info > 0;
    Keep(*std::move(result));
    if (summary_.solved) x_ = Unpacked<T>(out.data(), plan.delivered);
    return summary_;
  }
  absl::StatusOr<SolverPair> SolverOf(DType dtype, int64_t nrhs) {
    auto solver = FindSolver(device_, "auto", UnitDiagonal::kL, dtype, kN, nrhs);
    if (!solver.ok()) return solver.status();
    return SolverPair{*solver};
  }
  SeriesSource Source() const { return matrix_ ? SeriesSource::kKept : SeriesSource::kFactor; }
  absl::StatusOr<SeriesStepPlan> Plan(const std::optional<Matrix>& a,
                                      const std::optional<MatrixChange>& change, int64_t nrhs,
                                      const StepRequest& request) {
    FactorRequest factor;
    factor.matrix_dtype = request.matrix_dtype;
    factor.factor_dtype = request.factor_dtype;
    SeriesStepOptions options;
    auto factorize = runner_.Options(factor, kN);
    if (!factorize.ok()) return factorize.status();
    options.factor = *factorize;
    auto solver = SolverOf(request.factor_dtype, nrhs);
    if (!solver.ok()) return solver.status();
    options.with_old = options.with_new = *solver;
    options.op = request.op;
    options.accuracy = request.accuracy;
    options.most_iterations = request.most_iterations;
    options.update = request.update;
    SeriesMatrix matrix{a ? SeriesSource::kUpload : Source(),
                        {nullptr, request.matrix_dtype, request.layout, kN, kN},
                        std::nullopt,
                        change,
                        matrix_ ? update_rank_ : 0};
    if (a && request.sparse) {
      matrix.nonzeros = PackSparse(*a, kN, request.matrix_dtype).nonzeros;
    } else if (!a && request.sparse) {
      matrix.nonzeros = (matrix_ ? *matrix_ : *factor_).summary.matrix_nonzeros;
    }
    return PlanSeriesStep(options, factor_ ? &factor_->summary : nullptr, matrix,
                          {nullptr, request.rhs_dtype, request.layout, kN, nrhs});
  }
  void Keep(SeriesStepResult result) {
    summary_ = result.summary;
    if (result.factor && result.factor->summary.info == 0) {
      factor_ = std::move(result.factor);
      matrix_.reset();
    }
    if (result.matrix) {
      matrix_ = std::move(result.matrix);
      update_rank_ = result.summary.update_rank;
    }
    solution_ = std::move(result.solution);
  }

  Device& device_;
  JobRunner runner_;
  std::optional<Factorization> factor_;
  std::optional<Factorization> matrix_;
  std::optional<Factorization> solution_;
  int64_t update_rank_ = 0;
  std::optional<Factorization> map_;
  SeriesStepSummary summary_;
  JobBytes bytes_;
  bool made_singular_ = false;
  std::vector<T> x_;
};

template <class T>
std::vector<T> Random(int64_t rows, int64_t cols, uint64_t seed) {
  if constexpr (kIsComplex<T>) {
    return RandomComplex(rows, cols, seed);
  } else {
    return RandomMatrix(rows, cols, seed);
  }
}

// `a` with entries changed by up to `change`.
template <class T>
std::vector<T> Changed(std::vector<T> a, double change, uint64_t seed) {
  const std::vector<T> random = Random<T>(kN, kN, seed);
  for (size_t i = 0; i < a.size(); ++i) a[i] += change * random[i];
  return a;
}

template <class T>
class SeriesStepTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (DeviceUnderTest() == nullptr) GTEST_SKIP() << "the machine has no such device";
    series_.emplace(*DeviceUnderTest());
  }

  static StepRequest Request() {
    StepRequest request;
    request.matrix_dtype = request.factor_dtype = request.rhs_dtype = kDTypeOf<T>;
    return request;
  }

  std::optional<Series<T>> series_;
};

using Types = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(SeriesStepTest, Types);

TYPED_TEST(SeriesStepTest, OneFactorServesSmallChanges) {
  for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
    for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
      Series<TypeParam> series(*DeviceUnderTest());
      StepRequest request = this->Request();
      request.op = op;
      request.layout = layout;
      auto a = Random<TypeParam>(kN, kN, 3);
      auto b = Random<TypeParam>(kN, kNrhs, 5);
      for (int step = 0; step < 5; ++step) {
        ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, series.Step(a, b, request));
        EXPECT_TRUE(summary.solved && summary.accurate);
        EXPECT_LE(summary.backward_error, kDefaultAccuracy);
        EXPECT_GT(summary.amplification, 1);
        EXPECT_LT(summary.amplification, 1e6);
        EXPECT_LE(BackwardError(a, kN, op, series.x(), b, kNrhs), 1.1 * kDefaultAccuracy);
        if (step == 0) {
          EXPECT_EQ(summary.old_iterations, 0);
          EXPECT_GE(summary.new_iterations, 1);
        } else {
          EXPECT_EQ(summary.new_iterations, 0);
          EXPECT_GE(summary.old_iterations, 1);
          EXPECT_LE(summary.old_iterations, 6);
        }
        a = Changed(a, 1e-6, 100 + step);
        b[step] += 0.01;
      }
    }
  }
}

TYPED_TEST(SeriesStepTest, TheLastSolutionIsTheStart) {
  const auto a = Random<TypeParam>(kN, kN, 3);
  const auto b = Random<TypeParam>(kN, kNrhs, 5);
  ASSERT_OK(this->series_->Step(a, b, this->Request()));
  const auto x = this->series_->x();
  // The same system once more: it is solved already.
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary same, this->series_->Step(a, b, this->Request()));
  EXPECT_EQ(same.old_iterations, 0);
  EXPECT_EQ(same.new_iterations, 0);
  EXPECT_TRUE(same.accurate);
  EXPECT_EQ(this->series_->x(), x);
  // One column more: it is of no use.
  const auto wide = Random<TypeParam>(kN, kNrhs + 1, 6);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary more, this->series_->Step(a, wide, this->Request()));
  EXPECT_EQ(more.old_iterations, 1);
  EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), wide, kNrhs + 1),
            1.1 * kDefaultAccuracy);
}

TYPED_TEST(SeriesStepTest, ARightHandSideThatBecomesZeroNeedsNoNewFactor) {
  const auto a = Random<TypeParam>(kN, kN, 3);
  auto b = Random<TypeParam>(kN, kNrhs, 5);
  ASSERT_OK(this->series_->Step(a, b, this->Request()));
  std::fill(b.begin(), b.begin() + kN, TypeParam{});
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary,
                       this->series_->Step(Changed(a, 1e-6, 4), b, this->Request()));
  EXPECT_EQ(summary.new_iterations, 0);
  EXPECT_LE(summary.old_iterations, 6);
  EXPECT_TRUE(summary.accurate);
  EXPECT_FALSE(summary.nearly_singular);
  const auto& x = this->series_->x();
  EXPECT_TRUE(std::all_of(x.begin(), x.begin() + kN, [](TypeParam v) { return v == TypeParam{}; }));
}

TYPED_TEST(SeriesStepTest, AMatrixTooFarIsFactoredAnew) {
  const auto b = Random<TypeParam>(kN, kNrhs, 5);
  StepRequest request = this->Request();
  ASSERT_OK(this->series_->Step(Random<TypeParam>(kN, kN, 3), b, request));
  request.most_iterations = 10;
  const auto other = Random<TypeParam>(kN, kN, 4);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(other, b, request));
  EXPECT_EQ(summary.old_iterations, 10);
  EXPECT_GE(summary.new_iterations, 1);
  EXPECT_LE(summary.new_iterations, 3);
  EXPECT_TRUE(summary.accurate);
  EXPECT_LE(BackwardError(other, kN, Op::kNone, this->series_->x(), b, kNrhs),
            1.1 * kDefaultAccuracy);
  // And the new factor is that of the new matrix.
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary next, this->series_->Step(other, b, request));
  EXPECT_EQ(next.new_iterations, 0);
}

TYPED_TEST(SeriesStepTest, RightHandSidesAloneAreSolvedWithTheLastMatrix) {
  const StepRequest request = this->Request();
  auto a = Random<TypeParam>(kN, kN, 3);
  for (int matrix = 0; matrix < 2; ++matrix) {
    // That of the factor at first, then one that the state has.
    ASSERT_OK(this->series_->Step(a, Random<TypeParam>(kN, 1, 5), request));
    for (int step = 0; step < 2; ++step) {
      const auto b = Random<TypeParam>(kN, 1, 20 + step);
      ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary,
                           this->series_->Step(std::nullopt, b, request));
      EXPECT_TRUE(summary.accurate);
      EXPECT_EQ(summary.new_iterations, 0);
      EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), b, 1), 1.1 * kDefaultAccuracy);
    }
    a = Changed(a, 1e-5, 9);
  }
}

// One behind the other, as changes arrive.
template <class... Parts>
std::vector<std::byte> PackTogether(const Parts&... parts) {
  std::vector<std::byte> block;
  const auto append = [&](std::span<const std::byte> bytes) {
    block.insert(block.end(), bytes.begin(), bytes.end());
  };
  (append(std::as_bytes(std::span(parts))), ...);
  return block;
}

TYPED_TEST(SeriesStepTest, ChangesArriveInPlaceOfTheMatrix) {
  using T = TypeParam;
  StepRequest request = this->Request();
  request.layout = Layout::kRowMajor;
  auto a = Random<T>(kN, kN, 3);
  ASSERT_OK(this->series_->Step(a, Random<T>(kN, 1, 5), request));
  // The factor's matrix at first, then what the steps have left.
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
    const std::vector<T> v = Random<T>(kRank, kN, 50 + step);  // V^T: its columns are V's rows
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

// a := a + u v, with v = V^T, rank x n.
template <class T>
void AddProduct(std::vector<T>& a, const std::vector<T>& u, const std::vector<T>& v) {
  const auto rank = static_cast<int64_t>(u.size()) / kN;
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = 0; i < kN; ++i) {
      for (int64_t k = 0; k < rank; ++k) a[i + j * kN] += u[i + k * kN] * v[k + j * rank];
    }
  }
}

// Changes as large as the matrix: of no factor but an updated one.
TYPED_TEST(SeriesStepTest, LowRankChangesUpdateTheFactorUntilTheirRankIsTooLarge) {
  using T = TypeParam;
  constexpr int64_t kRank = 3;
  ASSERT_EQ(MostUpdateRank(kN), 5 * kRank);
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
      EXPECT_LE(changed.old_iterations, 4);  // Z, and a correction or two
      EXPECT_LE(BackwardError(a, kN, op, series.x(), b, kNrhs), 1.1 * kDefaultAccuracy);
      // With more columns than before, and without a change.
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
    request.most_iterations = 5;
    ASSERT_OK_AND_ASSIGN(
        const SeriesStepSummary beyond,
        series.ChangedStep({MatrixChange::Kind::kLowRank, 1}, PackTogether(u, v), b, request));
    EXPECT_EQ(beyond.update_rank, 0);
    EXPECT_EQ(beyond.old_iterations, 5);
    EXPECT_GE(beyond.new_iterations, 1);
    EXPECT_LE(BackwardError(a, kN, op, series.x(), b, kNrhs), 1.1 * kDefaultAccuracy);
    // The new factor is the start of new updates.
    AddProduct(a, u, v);
    ASSERT_OK_AND_ASSIGN(
        const SeriesStepSummary again,
        series.ChangedStep({MatrixChange::Kind::kLowRank, 1}, PackTogether(u, v), b, request));
    EXPECT_EQ(again.update_rank, 1);
    EXPECT_EQ(again.new_iterations, 0);
    EXPECT_LE(BackwardError(a, kN, op, series.x(), b, kNrhs), 1.1 * kDefaultAccuracy);
  }
}

TYPED_TEST(SeriesStepTest, AChangeThatIsNotOfLowRankEndsUpdates) {
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

// A column becomes zero, by a change of rank 1, and comes back.
TYPED_TEST(SeriesStepTest, AnUpdateThatMakesTheMatrixSingularIsAResult) {
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

TYPED_TEST(SeriesStepTest, ChangesThatAreNoneLeaveTheMatrixAsItWas) {
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

TYPED_TEST(SeriesStepTest, AKeptMatrixIsFactoredWhereTheOldFactorDoesNotServe) {
  StepRequest request = this->Request();
  const auto a = Random<TypeParam>(kN, kN, 3);
  ASSERT_OK(this->series_->Step(a, Random<TypeParam>(kN, 1, 5), request));
  const auto changed = Changed(a, 1e-3, 9);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary reused,
                       this->series_->Step(changed, Random<TypeParam>(kN, 1, 6), request));
  EXPECT_EQ(reused.new_iterations, 0);
  ASSERT_TRUE(this->series_->matrix());
  request.most_iterations = 1;
  const auto b = Random<TypeParam>(kN, 1, 7);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary,
                       this->series_->Step(std::nullopt, b, request));
  EXPECT_GE(summary.new_iterations, 1);
  EXPECT_TRUE(summary.accurate);
  EXPECT_LE(BackwardError(changed, kN, Op::kNone, this->series_->x(), b, 1),
            1.1 * kDefaultAccuracy);
}

TYPED_TEST(SeriesStepTest, ASingularMatrixIsAResultAndTheNextOneIsSolved) {
  const StepRequest request = this->Request();
  const auto a = Random<TypeParam>(kN, kN, 3);
  const auto b = Random<TypeParam>(kN, kNrhs, 5);
  ASSERT_OK(this->series_->Step(a, b, request));
  auto zero = a;
  for (int64_t i = 0; i < kN; ++i) zero[i] = 0;
  // The old factor finds an X, huge and of a small backward error; the matrix has none.
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(zero, b, request));
  EXPECT_TRUE(this->series_->made_singular());
  EXPECT_FALSE(summary.solved);
  EXPECT_FALSE(summary.accurate);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary next,
                       this->series_->Step(Changed(a, 1e-8, 4), b, request));
  EXPECT_TRUE(next.accurate);
  EXPECT_FALSE(next.nearly_singular);
}

// However little is asked of X: a column is a combination of others, and so is a row, but not of
// the right-hand side. In these coefficients nothing is rounded, so that the matrix is singular.
TYPED_TEST(SeriesStepTest, NoAnswerOfASingularMatrixGoesOutWithoutAWord) {
  for (const double accuracy : {0.0, 1e-10, 1e-8, 1e-4}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(::testing::Message() << "accuracy " << accuracy << ", seed " << seed);
      StepRequest request = this->Request();
      request.accuracy = accuracy;
      auto a = Random<TypeParam>(kN, kN, seed);
      for (auto& value : a) value = TypeParam(std::round(std::real(value) * 1024) / 1024);
      Series<TypeParam> series(*DeviceUnderTest());
      auto b = Random<TypeParam>(kN, 1, seed + 100);
      ASSERT_OK(series.Step(a, b, request));
      auto singular = a;
      for (int64_t j = 0; j < kN; ++j) singular[j * kN] = singular[1 + j * kN] + a[2 + j * kN];
      b[0] = b[1] + b[2] + TypeParam(1);
      ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, series.Step(singular, b, request));
      EXPECT_TRUE(!summary.solved || summary.nearly_singular)
          << "amplification " << summary.amplification << ", error " << summary.backward_error;
    }
  }
}

// An accuracy that is too low to know X is no reason for a new factor.
TYPED_TEST(SeriesStepTest, WhatIsAskedIsRaisedWhereItLeavesXInDoubt) {
  auto a = Random<TypeParam>(kN, kN, 3);
  for (int64_t i = 0; i < kN; ++i) a[i] = a[i + kN] + 1e-7 * a[i];  // condition above 1e8
  StepRequest request = this->Request();
  request.accuracy = 1e-8;
  ASSERT_OK(this->series_->Step(a, Random<TypeParam>(kN, 1, 5), request));
  const auto b = Random<TypeParam>(kN, 1, 6);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary,
                       this->series_->Step(Changed(a, 1e-11, 4), b, request));
  EXPECT_EQ(summary.new_iterations, 0);
  EXPECT_FALSE(summary.nearly_singular);
  EXPECT_GT(summary.amplification, 1e6);
  EXPECT_LT(summary.amplification * summary.backward_error, 0.01);
}

TYPED_TEST(SeriesStepTest, SparseMatricesStaySparse) {
  StepRequest request = this->Request();
  request.sparse = true;
  std::vector<TypeParam> a;
  for (const double x : RandomSparse(kN, 0.1, 3)) a.push_back(x);
  const auto b = Random<TypeParam>(kN, 1, 5);
  ASSERT_OK(this->series_->Step(a, b, request));
  for (auto& x : a) x *= 1 + 1e-5;
  a[0] *= 1 + 1e-4;
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(a, b, request));
  EXPECT_EQ(summary.new_iterations, 0);
  EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), b, 1), 1.1 * kDefaultAccuracy);
  EXPECT_TRUE(this->series_->matrix()->sparse_matrix());
  EXPECT_FALSE(this->series_->matrix()->matrix());
  const auto other = Random<TypeParam>(kN, 1, 6);
  ASSERT_OK(this->series_->Step(std::nullopt, other, request));
  EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), other, 1), 1.1 * kDefaultAccuracy);
}

// Lines for the elements of `a` that are stored, the last one first; every third element is the sum
// of two lines, each other one that of a line across the diagonal.
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

  // The values of the lines by which the elements are those of `a`, to the bit.
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

TYPED_TEST(SeriesStepTest, ValuesOnAPatternAreTheMatrixOfItsText) {
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
    // With the old factor, with a new one, and from the matrix that is kept with that.
    for (const int iterations : {50, 0, 50}) {
      request.most_iterations = iterations;
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

TYPED_TEST(SeriesStepTest, ValuesThatAreNoneLeaveTheMatrixAsItWas) {
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

TYPED_TEST(SeriesStepTest, AFactorInSinglePrecisionReachesTheAccuracyOfTheRightHandSide) {
  StepRequest request = this->Request();
  request.factor_dtype = kIsComplex<TypeParam> ? DType::kComplex64 : DType::kFloat32;
  auto a = Random<TypeParam>(kN, kN, 3);
  for (int step = 0; step < 3; ++step) {
    const auto b = Random<TypeParam>(kN, 1, 5 + step);
    ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(a, b, request));
    EXPECT_TRUE(summary.accurate);
    EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), b, 1), 1.1 * kDefaultAccuracy);
    a = Changed(a, 1e-4, 30 + step);
  }
  request.rhs_dtype = request.factor_dtype;
  const std::vector<TypeParam> b = Rounded(Random<TypeParam>(kN, 1, 9), request.rhs_dtype);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(a, b, request));
  EXPECT_TRUE(summary.accurate);
  EXPECT_GT(summary.backward_error, 1e-12);  // of X as it was rounded
  EXPECT_LE(summary.backward_error, std::sqrt(static_cast<double>(kN)) * 0x1p-24);
}

TYPED_TEST(SeriesStepTest, AnAnswerThatIsNotAccurateSaysSo) {
  StepRequest request = this->Request();
  const auto a = Random<TypeParam>(kN, kN, 3);
  ASSERT_OK(this->series_->Step(a, Random<TypeParam>(kN, 1, 5), request));
  request.most_iterations = 1;
  request.accuracy = kRoundoff / 1024;  // counts as roundoff, which one solve does not reach
  const auto b = Random<TypeParam>(kN, 1, 6);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary,
                       this->series_->Step(std::nullopt, b, request));
  EXPECT_EQ(summary.accurate, summary.backward_error <= kRoundoff);
  request.accuracy = 1e-3;
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary coarse,
                       this->series_->Step(Changed(a, 1e-5, 8), b, request));
  EXPECT_TRUE(coarse.accurate);
  EXPECT_EQ(coarse.old_iterations, 0);  // the last X does
}

TYPED_TEST(SeriesStepTest, NumbersNearTheEndsOfTheRange) {
  StepRequest request = this->Request();
  for (const double scale : {0x1p-1000, 0x1p1010}) {
    Series<TypeParam> series(*DeviceUnderTest());
    auto a = Random<TypeParam>(kN, kN, 3);
    for (auto& x : a) x *= scale;
    auto b = Random<TypeParam>(kN, 1, 5);
    for (auto& x : b) x *= scale;
    for (int step = 0; step < 2; ++step) {
      ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, series.Step(a, b, request));
      EXPECT_TRUE(summary.accurate) << scale << " " << summary.backward_error;
      for (auto& x : a) x *= 1 + 1e-5;
    }
  }
}

TYPED_TEST(SeriesStepTest, WhatIsNotFiniteIsNamed) {
  StepRequest request = this->Request();
  auto a = Random<TypeParam>(kN, kN, 3);
  auto b = Random<TypeParam>(kN, 1, 5);
  ASSERT_OK(this->series_->Step(a, b, request));
  b[7] = std::numeric_limits<double>::infinity();
  EXPECT_THAT(this->series_->Step(a, b, request),
              FailsWith(absl::StatusCode::kInvalidArgument, "right-hand side"));
  b[7] = 1;
  a[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(this->series_->Step(a, b, request),
              FailsWith(absl::StatusCode::kInvalidArgument, "matrix"));
}

TYPED_TEST(SeriesStepTest, StopsBetweenIterations) {
  StepRequest request = this->Request();
  const auto a = Random<TypeParam>(kN, kN, 3);
  const auto b = Random<TypeParam>(kN, 1, 5);
  ASSERT_OK(this->series_->Step(a, b, request));
  int asked = 0;
  const auto stop = [&] { return ++asked > 3; };
  EXPECT_THAT(this->series_->Step(Changed(a, 1e-2, 4), b, request, stop),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
}

class SeriesMemoryTest : public ::testing::Test {
 protected:
  FakeDevice device_{{.has_sparse_ops = true}};
  CountingResource& memory_ = device_.counting_memory();
};

TEST_F(SeriesMemoryTest, StepsStayWithinTheirDeclarations) {
  for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
    for (const bool sparse : {false, true}) {
      for (const bool single : {false, true}) {
        if (sparse && layout == Layout::kRowMajor) continue;
        Series<double> series(device_);
        StepRequest request;
        request.layout = layout;
        request.sparse = sparse;
        if (single) request.factor_dtype = request.rhs_dtype = DType::kFloat32;
        HostMatrix a = RandomSparse(kN, 0.1, 3);
        const HostMatrix b = Rounded(RandomMatrix(kN, kNrhs, 5), request.rhs_dtype);
        for (int step = 0; step < 6; ++step) {
          const bool kept = step % 3 == 2;
          request.most_iterations = step == 3 ? 0 : 50;
          const size_t before = series.kept_bytes();
          ASSERT_EQ(memory_.live_bytes(), before);
          memory_.ResetPeak();
          ASSERT_OK(series.Step(kept ? std::nullopt : std::optional(a), b, request));
          EXPECT_LE(memory_.peak_bytes() - before, series.bytes().peak);
          EXPECT_GE(4 * (memory_.peak_bytes() - before), series.bytes().peak);
          a[0] += 1e-6;
        }
      }
    }
  }
  EXPECT_EQ(memory_.live_bytes(), 0u);
}

TEST_F(SeriesMemoryTest, UpdatesStayWithinTheirDeclarations) {
  Series<double> series(device_);
  StepRequest request;
  request.update = true;
  const HostMatrix b = RandomMatrix(kN, 1, 5);
  ASSERT_OK(series.Step(RandomMatrix(kN, kN, 3), b, request));
  for (int step = 0; step < 6; ++step) {
    // The first is wider than the right-hand side, the others add to it.
    const int64_t rank = step == 0 ? 5 : 1;
    const size_t before = series.kept_bytes();
    ASSERT_EQ(memory_.live_bytes(), before);
    memory_.ResetPeak();
    ASSERT_OK_AND_ASSIGN(
        const SeriesStepSummary summary,
        series.ChangedStep({MatrixChange::Kind::kLowRank, rank},
                           PackTogether(RandomMatrix(kN, rank, 7), RandomMatrix(rank, kN, 8)), b,
                           request));
    EXPECT_EQ(summary.update_rank, 5 + step);
    EXPECT_LE(memory_.peak_bytes() - before, series.bytes().peak);
    EXPECT_GE(4 * (memory_.peak_bytes() - before), series.bytes().peak);
  }
  int failures = 0;
  for (;; ++failures) {
    const size_t before = series.kept_bytes();
    memory_.FailAllocations(1, failures);
    const auto summary = series.ChangedStep(
        {MatrixChange::Kind::kLowRank, 1},
        PackTogether(RandomMatrix(kN, 1, 7), RandomMatrix(1, kN, 8)), b, request);
    if (summary.ok()) break;
    EXPECT_EQ(summary.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(memory_.live_bytes(), before);
  }
  memory_.FailAllocations(0);
  EXPECT_GE(failures, 8);
}

TEST_F(SeriesMemoryTest, EveryFailedAllocationIsReportedAndGivesAllBack) {
  Series<double> series(device_);
  const StepRequest request;
  const HostMatrix a = RandomMatrix(kN, kN, 3);
  const HostMatrix b = RandomMatrix(kN, 1, 5);
  int failures = 0;
  for (;; ++failures) {
    memory_.FailAllocations(1, failures);
    const auto summary = series.Step(a, b, request);
    if (summary.ok()) break;
    EXPECT_EQ(summary.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(memory_.live_bytes(), 0u);
  }
  memory_.FailAllocations(0);
  EXPECT_GE(failures, 8);
}

TEST(SeriesPlanTest, RefusesWhatDoesNotFit) {
  FakeDevice device;
  Series<double> series(device);
  StepRequest request;
  ASSERT_OK(series.Step(RandomMatrix(kN, kN, 3), RandomMatrix(kN, 1, 5), request));
  request.accuracy = -1;
  EXPECT_THAT(series.Step(std::nullopt, RandomMatrix(kN, 1, 5), request),
              FailsWith(absl::StatusCode::kInvalidArgument, "accuracy"));
  request.accuracy = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(series.Step(std::nullopt, RandomMatrix(kN, 1, 5), request),
              FailsWith(absl::StatusCode::kInvalidArgument, "accuracy"));
  request.accuracy = 0;
  EXPECT_THAT(series.Step(std::nullopt, {}, request),
              FailsWith(absl::StatusCode::kInvalidArgument, "right-hand side"));
  Series<double> none(device);
  EXPECT_THAT(none.Step(std::nullopt, RandomMatrix(kN, 1, 5), request),
              FailsWith(absl::StatusCode::kInvalidArgument, "no factor"));
}

}  // namespace
}  // namespace crout::testing
