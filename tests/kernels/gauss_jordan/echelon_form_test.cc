// SPDX-License-Identifier: Apache-2.0

// Tests reduced row echelon forms in every type.
#include "kernels/jobs/echelon.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "kernels/host/device/host_device.h"
#include "kernels/numerics/accuracy_warnings.h"
#include "kernels/util/status_macros.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/matrices/hard_matrices.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::echelon_form_test {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

template <class T>
class EchelonFormTest : public ::testing::Test {
 protected:
  using Matrix = std::vector<T>;

  // Reduces an m x n matrix in `layout` in place. Its last `augmented` columns contain no pivots.
  absl::StatusOr<EchelonForm> Reduce(
      Matrix& a, int64_t m, int64_t n, std::optional<double> tolerance = std::nullopt,
      StopRequested stop = [] { return false; }, int64_t augmented = 0,
      Layout layout = Layout::kColumnMajor) {
    const EchelonOptions options{device_->echelon_reducer(), augmented, tolerance};
    CROUT_ASSIGN_OR_RETURN(const EchelonPlan plan,
                           PlanEchelonForm(options, {nullptr, kDTypeOf<T>, layout, m, n}));
    CROUT_ASSIGN_OR_RETURN(Buffer upload, device_->memory().Allocate(m * n * sizeof(T)));
    std::copy_n(a.data(), m * n, upload.as<T>());
    KernelTimings timings;
    return ReduceToEchelonForm(*context_, plan, std::move(upload),
                               reinterpret_cast<std::byte*>(a.data()), stop, timings);
  }

  static Matrix Random(int64_t m, int64_t n, uint64_t seed) {
    const HostMatrix from = RandomMatrix(m, n, seed);
    return {from.begin(), from.end()};
  }

  static Matrix Multiply(const Matrix& a, const Matrix& b, int64_t m, int64_t k, int64_t n) {
    Matrix c(m * n, T{0});
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t l = 0; l < k; ++l) {
        for (int64_t i = 0; i < m; ++i) c[i + j * m] += a[i + l * m] * b[l + j * k];
      }
    }
    return c;
  }

  // Expects that `r` is exactly in reduced row echelon form and has the row space of `a`: C R = A
  // within roundoff, where C consists of the pivot columns of A.
  static void ExpectFormOf(const Matrix& a, const Matrix& r, int64_t m, int64_t n,
                           const EchelonForm& form) {
    for (int64_t k = 0; k < form.rank(); ++k) {
      const int64_t column = form.pivot_columns[k];
      for (int64_t i = 0; i < m; ++i) EXPECT_EQ(r[i + column * m], T(i == k ? 1 : 0));
      for (int64_t j = 0; j < column; ++j) EXPECT_EQ(r[k + j * m], T(0)) << k << ", " << j;
    }
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = form.rank(); i < m; ++i) EXPECT_EQ(r[i + j * m], T(0)) << i << ", " << j;
    }
    Matrix c;
    Matrix top;
    for (const int64_t j : form.pivot_columns) {
      c.insert(c.end(), a.begin() + j * m, a.begin() + (j + 1) * m);
    }
    for (int64_t j = 0; j < n; ++j) {
      top.insert(top.end(), r.begin() + j * m, r.begin() + j * m + form.rank());
    }
    const Matrix product = Multiply(c, top, m, form.rank(), n);
    double largest = 0;
    for (const T& x : top) largest = std::max(largest, static_cast<double>(std::abs(x)));
    const double bound = 100 * static_cast<double>(m + n) * UnitRoundoff(kDTypeOf<T>) *
                         std::max(1.0, largest) * static_cast<double>(form.rank() + 1);
    for (int64_t i = 0; i < m * n; ++i) EXPECT_LE(std::abs(product[i] - a[i]), bound) << i;
  }

  static std::unique_ptr<Device> MakeDevice() { return host::MakeDevice({.threads = 2}); }
  const std::unique_ptr<Device> device_ = MakeDevice();
  const std::unique_ptr<ExecutionContext> context_ = *device_->CreateContext();
};

using Types = ::testing::Types<double, float, std::complex<double>, std::complex<float>>;
TYPED_TEST_SUITE(EchelonFormTest, Types);

TYPED_TEST(EchelonFormTest, MatchesHandComputedForm) {
  // [1 2 1 3; 2 4 0 2; 3 6 1 5]: column 1 is twice column 0, and row 2 is the sum of the other
  // rows.
  std::vector<TypeParam> a{1, 2, 3, 2, 4, 6, 1, 0, 1, 3, 2, 5};
  ASSERT_OK_AND_ASSIGN(const EchelonForm form, this->Reduce(a, 3, 4));
  EXPECT_EQ(form.rank(), 2);
  EXPECT_THAT(form.pivot_columns, ElementsAre(0, 2));
  const std::vector<TypeParam> expected{1, 0, 0, 2, 0, 0, 0, 1, 0, 1, 2, 0};
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_LE(std::abs(a[i] - expected[i]), 10 * UnitRoundoff(kDTypeOf<TypeParam>)) << i;
  }
  EXPECT_DOUBLE_EQ(form.tolerance, 4 * 2 * UnitRoundoff(kDTypeOf<TypeParam>) * 15);
}

TYPED_TEST(EchelonFormTest, ReducesEveryShapeAndRank) {
  struct Shape {
    int64_t m;
    int64_t n;
    int64_t rank;
  };
  for (const Shape& shape :
       {Shape{1, 1, 1}, Shape{5, 5, 5}, Shape{5, 9, 5}, Shape{9, 5, 5}, Shape{40, 40, 17},
        Shape{33, 70, 33}, Shape{70, 33, 33}, Shape{31, 200, 12}, Shape{200, 31, 12},
        Shape{64, 300, 64}, Shape{100, 100, 100}, Shape{100, 100, 1}}) {
    SCOPED_TRACE(absl::StrCat(shape.m, " x ", shape.n, " of rank ", shape.rank));
    const auto left = this->Random(shape.m, shape.rank, 1);
    const auto right = this->Random(shape.rank, shape.n, 2);
    const bool full = shape.rank == std::min(shape.m, shape.n);
    const auto a = full ? this->Random(shape.m, shape.n, 3)
                        : this->Multiply(left, right, shape.m, shape.rank, shape.n);
    auto r = a;
    // The roundoff of eliminated entries grows with the multipliers.
    const double tolerance = 1e4 * UnitRoundoff(kDTypeOf<TypeParam>);
    ASSERT_OK_AND_ASSIGN(const EchelonForm form,
                         this->Reduce(r, shape.m, shape.n, full ? 0 : tolerance));
    EXPECT_EQ(form.rank(), shape.rank);
    for (int64_t k = 0; k < form.rank(); ++k) EXPECT_EQ(form.pivot_columns[k], k);
    this->ExpectFormOf(a, r, shape.m, shape.n, form);
  }
}

TYPED_TEST(EchelonFormTest, FindsPivotsInIndependentColumns) {
  // Columns 0, 3, 6, ... of 100 are independent. Each is followed by two of its multiples.
  const int64_t m = 40;
  const int64_t n = 100;
  auto a = this->Random(m, n, 5);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      if (j % 3 != 0) a[i + j * m] = a[i + (j - j % 3) * m] * TypeParam(j % 3 == 1 ? 2 : -0.5);
    }
  }
  auto r = a;
  ASSERT_OK_AND_ASSIGN(const EchelonForm form,
                       this->Reduce(r, m, n, 1e4 * UnitRoundoff(kDTypeOf<TypeParam>)));
  ASSERT_THAT(form.pivot_columns, SizeIs(34));
  for (int64_t k = 0; k < form.rank(); ++k) EXPECT_EQ(form.pivot_columns[k], 3 * k);
  this->ExpectFormOf(a, r, m, n, form);
}

TYPED_TEST(EchelonFormTest, ComputesTheInverseFromAnAugmentedMatrix) {
  const int64_t n = 50;
  const auto a = this->Random(n, n, 7);
  auto augmented = a;
  augmented.resize(2 * n * n, TypeParam(0));
  for (int64_t i = 0; i < n; ++i) augmented[i + (n + i) * n] = 1;
  ASSERT_OK_AND_ASSIGN(const EchelonForm form, this->Reduce(augmented, n, 2 * n));
  EXPECT_EQ(form.rank(), n);
  const std::vector<TypeParam> inverse(augmented.begin() + n * n, augmented.end());
  const auto product = this->Multiply(a, inverse, n, n, n);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_LE(std::abs(product[i + j * n] - TypeParam(i == j ? 1 : 0)),
                1e5 * UnitRoundoff(kDTypeOf<TypeParam>));
    }
  }
}

TYPED_TEST(EchelonFormTest, ChoosesNoPivotsInAugmentedColumns) {
  // [1 2 | 3 1; 2 4 | 5 2] has rank 1, and the first right-hand side has no solution.
  std::vector<TypeParam> a{1, 2, 2, 4, 3, 5, 1, 2};
  const auto never = [] { return false; };
  ASSERT_OK_AND_ASSIGN(const EchelonForm form, this->Reduce(a, 2, 4, std::nullopt, never, 2));
  EXPECT_THAT(form.pivot_columns, ElementsAre(0));
  EXPECT_EQ(a, (std::vector<TypeParam>{1, 0, 2, 0, 2.5, 0.5, 1, 0}));
  EXPECT_DOUBLE_EQ(form.tolerance, 2 * 2 * UnitRoundoff(kDTypeOf<TypeParam>) * 6);
  std::vector<TypeParam> all{3, 4};
  ASSERT_OK_AND_ASSIGN(const EchelonForm none, this->Reduce(all, 1, 2, std::nullopt, never, 2));
  EXPECT_EQ(none.rank(), 0);
  EXPECT_EQ(all, (std::vector<TypeParam>{3, 4}));
  for (const int64_t wrong : {-1, 3}) {
    EXPECT_THAT(this->Reduce(all, 1, 2, 0, never, wrong),
                FailsWith(absl::StatusCode::kInvalidArgument, "augmented"));
  }
}

TYPED_TEST(EchelonFormTest, GivesTheSameFormForRowMajorMatrices) {
  const int64_t m = 70;
  const int64_t n = 45;
  auto by_columns = this->Random(m, n, 9);
  std::vector<TypeParam> by_rows(m * n);
  const auto transpose = [&](auto move) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) move(by_rows[i * n + j], by_columns[i + j * m]);
    }
  };
  transpose([](TypeParam& row, const TypeParam& column) { row = column; });
  const auto never = [] { return false; };
  ASSERT_OK(this->Reduce(by_columns, m, n));
  ASSERT_OK(this->Reduce(by_rows, m, n, std::nullopt, never, 0, Layout::kRowMajor));
  transpose([](const TypeParam& row, const TypeParam& column) { EXPECT_EQ(row, column); });
}

TYPED_TEST(EchelonFormTest, ToleranceDeterminesTheRank) {
  const std::vector<TypeParam> a{1, 0, 0, TypeParam(1e-3)};
  for (const auto& [tolerance, rank] : {std::pair{0.0, 2}, {1e-4, 2}, {1e-2, 1}, {1.0, 0}}) {
    auto r = a;
    ASSERT_OK_AND_ASSIGN(const EchelonForm form, this->Reduce(r, 2, 2, tolerance));
    EXPECT_EQ(form.rank(), rank) << tolerance;
    EXPECT_EQ(form.tolerance, tolerance);
  }
}

TYPED_TEST(EchelonFormTest, ReportsTheLeastPivotAndTheLargestRejected) {
  using T = TypeParam;
  std::vector<T> a{1, 0, 0, 0, T(0.5), 0, 0, 0, T(0.25), 0, 0, T(0.125)};
  auto r = a;
  ASSERT_OK_AND_ASSIGN(const EchelonForm form, this->Reduce(r, 3, 4, 0.3));
  EXPECT_THAT(form.pivot_columns, ElementsAre(0, 1));
  EXPECT_EQ(form.least_pivot, 0.5);
  EXPECT_EQ(form.largest_rejected, 0.25);
  r = a;
  ASSERT_OK_AND_ASSIGN(const EchelonForm all, this->Reduce(r, 3, 4, 0));
  EXPECT_EQ(all.least_pivot, 0.25);
  EXPECT_EQ(all.largest_rejected, std::nullopt) << "no row is left for the last column";
  r = a;
  ASSERT_OK_AND_ASSIGN(const EchelonForm none, this->Reduce(r, 3, 4, 1));
  EXPECT_EQ(none.least_pivot, std::nullopt);
  EXPECT_EQ(none.largest_rejected, 1);
}

TYPED_TEST(EchelonFormTest, ReducesEveryMagnitudeAlike) {
  using T = TypeParam;
  using Part = RealPart<T>;
  // [1 1 2 | 3; 1 -1 0 | 1; 2 0 2 | 5] has rank 2 and no solution. One value remains in the last
  // row, and it is proportional to the scale of A. Row sums overflow at one end of the range, and
  // products underflow at the other.
  const std::vector<T> unit{1, 1, 2, 1, -1, 0, 2, 0, 2, 3, 1, 5};
  const auto never = [] { return false; };
  std::vector<T> expected = unit;
  ASSERT_OK(this->Reduce(expected, 3, 4, std::nullopt, never, 1));
  for (const Part scale :
       {std::numeric_limits<Part>::max() / 8, std::numeric_limits<Part>::min()}) {
    std::vector<T> a = unit;
    for (T& x : a) x *= scale;
    ASSERT_OK_AND_ASSIGN(const EchelonForm form, this->Reduce(a, 3, 4, std::nullopt, never, 1));
    EXPECT_THAT(form.pivot_columns, ElementsAre(0, 1));
    EXPECT_GT(form.tolerance, 0);
    EXPECT_LT(form.tolerance, 1e-5 * scale);
    EXPECT_EQ(form.least_pivot, scale);
    EXPECT_EQ(form.largest_rejected, 0);
    EXPECT_EQ(form.growth, 1);
    for (size_t i = 0; i < a.size(); ++i) {
      const T x = i == 11 ? expected[i] * scale : expected[i];
      EXPECT_LE(std::abs(a[i] - x), 4 * UnitRoundoff(kDTypeOf<T>) * std::abs(x)) << i;
    }
  }
}

// A = B C with integer entries and known rank. Some leading columns are nearly dependent. After the
// elimination, the entries below the pivots are rounding errors.
TYPED_TEST(EchelonFormTest, FindsTheRankOfProductsOfIntegers) {
  using T = TypeParam;
  int cases = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const HostMatrix sizes = RandomMatrix(4, 1, 1000 + seed);
    const auto size = [&](int i) { return 33 + static_cast<int64_t>(18 * (sizes[i] + 1)); };
    const int64_t m = size(0);
    const int64_t n = size(1);
    const int64_t rank = 1 + static_cast<int64_t>((sizes[2] + 1) / 2 * (std::min(m, n) - 1));
    const auto integers = [&](int64_t rows, int64_t cols, uint64_t from) {
      std::vector<T> a;
      for (const double x : RandomMatrix(rows, cols, from)) a.push_back(T(std::round(2 * x)));
      return a;
    };
    const auto b = integers(m, rank, 2 * seed);
    const auto c = integers(rank, n, 2 * seed + 1);
    auto r = this->Multiply(b, c, m, rank, n);
    ASSERT_OK_AND_ASSIGN(const EchelonForm form, this->Reduce(r, m, n));
    EXPECT_EQ(form.rank(), rank) << seed << ": " << m << " x " << n;
    EXPECT_FALSE(IsGrowthHarmful(form.growth, kDTypeOf<T>)) << seed << ": " << form.growth;
    if (!form.largest_rejected) continue;
    ++cases;
    if (kDTypeOf<T> == WideOf(kDTypeOf<T>)) {
      EXPECT_LT(*form.largest_rejected, 1e-2 * *form.least_pivot);
    }
  }
  EXPECT_GT(cases, 100);
}

// Expects the growth up to rounding: the order in which a BLAS sums powers of two decides whether
// the sums are exact.
template <class T>
void ExpectAlmost(double growth, double expected) {
  constexpr bool kWide = kDTypeOf<T> == WideOf(kDTypeOf<T>);
  const double eps = kWide ? std::numeric_limits<double>::epsilon()
                           : double{std::numeric_limits<float>::epsilon()};
  EXPECT_NEAR(growth, expected, 100 * eps * expected);
}

// Wright's matrices are nonsingular with condition numbers below 100, but cancellation destroys
// their last pivots.
TYPED_TEST(EchelonFormTest, ReportsLargeGrowthIfTheRankIsUncertain) {
  using T = TypeParam;
  constexpr bool kWide = kDTypeOf<T> == WideOf(kDTypeOf<T>);
  const int64_t order = kWide ? 342 : 162;
  const HostMatrix wright = Wright(order);
  std::vector<T> a(wright.begin(), wright.end());
  ASSERT_OK_AND_ASSIGN(const EchelonForm form, this->Reduce(a, order, order));
  EXPECT_LT(form.rank(), order);
  EXPECT_TRUE(IsGrowthHarmful(form.growth, kDTypeOf<T>)) << form.growth;
  const HostMatrix wilkinson = GalleryNamed("gfpp").make(60);
  a.assign(wilkinson.begin(), wilkinson.end());
  ASSERT_OK_AND_ASSIGN(const EchelonForm full, this->Reduce(a, 60, 60));
  ExpectAlmost<T>(full.growth, 0x1p59);
}

// Wilkinson's matrix of order 40; its last column doubles with each pivot.
TYPED_TEST(EchelonFormTest, MeasuresGrowthInColumnsThatMayHavePivots) {
  using T = TypeParam;
  constexpr int64_t kN = 40;
  const HostMatrix wilkinson = GalleryNamed("gfpp").make(kN);
  const std::vector<T> a(wilkinson.begin(), wilkinson.end());
  const auto never = [] { return false; };
  auto r = a;
  ASSERT_OK_AND_ASSIGN(const EchelonForm form, this->Reduce(r, kN, kN, 0));
  ExpectAlmost<T>(form.growth, 0x1p39);
  r = a;
  ASSERT_OK_AND_ASSIGN(const EchelonForm augmented,
                       this->Reduce(r, kN, kN, std::nullopt, never, /*augmented=*/1));
  EXPECT_EQ(augmented.growth, 1);
  // The last column has no pivot and comes after all panels with pivots.
  std::vector<T> wide(a.begin(), a.end() - kN);
  for (int64_t i = 0; i < kN; ++i) wide.push_back(T(i == kN - 1 ? 1 : 0));
  wide.resize(kN * 300, T(0));
  wide.insert(wide.end(), kN, T(1));
  ASSERT_OK_AND_ASSIGN(const EchelonForm last, this->Reduce(wide, kN, 301, 0));
  EXPECT_EQ(last.rank(), kN);
  EXPECT_NEAR(last.growth, 0x1p39, 1e-5 * 0x1p39);
}

TYPED_TEST(EchelonFormTest, ReportsHarmlessGrowthOfSmallMatrices) {
  using T = TypeParam;
  for (uint64_t seed = 0; seed < 800; ++seed) {
    const auto m = static_cast<int64_t>(1 + seed % 23);
    const auto n = static_cast<int64_t>(1 + seed % 17);
    std::vector<T> a;
    for (const double x : RandomMatrix(m, n, seed)) {
      a.push_back(T(static_cast<RealPart<T>>(seed % 2 == 0 ? std::round(3 * x) : x)));
    }
    ASSERT_OK_AND_ASSIGN(const EchelonForm form, this->Reduce(a, m, n));
    EXPECT_GE(form.growth, 1);
    EXPECT_FALSE(IsGrowthHarmful(form.growth, kDTypeOf<T>)) << seed << ": " << form.growth;
  }
}

TYPED_TEST(EchelonFormTest, HandlesEmptyZeroAndInvalidInput) {
  std::vector<TypeParam> none(1);
  for (const auto& [m, n] : {std::pair{0, 0}, {0, 3}, {3, 0}}) {
    ASSERT_OK_AND_ASSIGN(const EchelonForm form, this->Reduce(none, m, n));
    EXPECT_EQ(form.rank(), 0);
  }
  std::vector<TypeParam> zero(12, TypeParam(0));
  ASSERT_OK_AND_ASSIGN(const EchelonForm form, this->Reduce(zero, 3, 4));
  EXPECT_EQ(form.rank(), 0);
  EXPECT_EQ(form.growth, 1);
  for (const double wrong : {-1.0, double{NAN}, double{INFINITY}}) {
    EXPECT_THAT(this->Reduce(zero, 3, 4, wrong),
                FailsWith(absl::StatusCode::kInvalidArgument, "tolerance"));
  }
  zero[5] = std::numeric_limits<RealPart<TypeParam>>::quiet_NaN();
  EXPECT_THAT(this->Reduce(zero, 3, 4), FailsWith(absl::StatusCode::kInvalidArgument, "matrix"));
  auto a = this->Random(40, 40, 1);
  EXPECT_THAT(this->Reduce(a, 40, 40, 0, [] { return true; }),
              FailsWith(absl::StatusCode::kCancelled, ""));
}

}  // namespace
}  // namespace crout::testing::echelon_form_test
