// SPDX-License-Identifier: Apache-2.0

// Tests crout.h against a real daemon: series.
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/clients/c_api.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"

namespace crout::e2e::c_api_series_test {
namespace {

using crout::testing::kThreshold;
using crout::testing::RandomMatrix;
using crout::testing::SolveRatio;
using ::testing::HasSubstr;

class CApiSeriesTest : public CApiTest {
 protected:
  static constexpr int64_t kN = 30;

  crout_series* Open(crout_series_options options = Sized<crout_series_options>()) {
    crout_series* series = nullptr;
    EXPECT_EQ(crout_series_open(connection_, &options, &series), CROUT_OK) << crout_last_error();
    return series;
  }
  int Step(crout_series* series, const std::vector<double>* a) {
    const crout_matrix rhs = Matrix(b_, kN, 1);
    if (a == nullptr) return crout_series_step(series, nullptr, &rhs, x_.data(), kN, &result_);
    const crout_matrix matrix = Matrix(*a, kN, kN);
    return crout_series_step(series, &matrix, &rhs, x_.data(), kN, &result_);
  }
  int Change(crout_series* series, const crout_change& change) {
    const crout_matrix rhs = Matrix(b_, kN, 1);
    return crout_series_change(series, &change, &rhs, x_.data(), kN, &result_);
  }
  // Returns a change that replaces all values of the last text, in the order of its lines.
  static crout_change ToValues(const std::vector<double>& values) {
    auto change = Sized<crout_change>();
    change.dtype = CROUT_FLOAT64;
    change.count = std::ssize(values);
    change.values = values.data();
    change.of_text = 1;
    return change;
  }
  void ExpectSolves(const std::vector<double>& a) {
    EXPECT_LT(SolveRatio(a, kN, Op::kNone, x_, b_, 1, DType::kFloat64), kThreshold);
    EXPECT_LE(result_.backward_error, result_.accuracy);
  }

  const std::vector<double> a_ = RandomMatrix(kN, kN, 1);
  const std::vector<double> b_ = RandomMatrix(kN, 1, 2);
  std::vector<double> x_ = std::vector<double>(kN);
  crout_series_result result_ = Sized<crout_series_result>();
};

TEST_F(CApiSeriesTest, StepsAndChanges) {
  auto options = Sized<crout_series_options>();
  options.strategy = CROUT_REUSE;
  options.algorithm = "getrf";
  crout_series* series = Open(options);
  ASSERT_EQ(Step(series, &a_), CROUT_OK) << crout_last_error();
  ExpectSolves(a_);
  EXPECT_EQ(result_.strategy, CROUT_REFACTOR);
  EXPECT_EQ(result_.age, 0);
  const std::string handle = result_.handle;
  EXPECT_EQ(handle.size(), 26u);
  std::vector<double> a = a_;
  for (double& entry : a) entry *= 1 + 1e-7;
  ASSERT_EQ(Step(series, &a), CROUT_OK) << crout_last_error();
  ExpectSolves(a);
  EXPECT_EQ(result_.strategy, CROUT_REUSE);
  EXPECT_EQ(result_.age, 1);
  EXPECT_EQ(result_.handle, handle);
  ASSERT_EQ(Step(series, nullptr), CROUT_OK) << crout_last_error();
  ExpectSolves(a);

  auto change = Sized<crout_change>();
  change.dtype = CROUT_FLOAT64;
  const std::vector<double> values = {0.5, -2};
  const int32_t rows[] = {3, 0}, cols[] = {4, 29};
  change.count = 2;
  change.values = values.data();
  change.rows = rows;
  change.cols = cols;
  for (int k = 0; k < 2; ++k) a[rows[k] + cols[k] * kN] = values[k];
  ASSERT_EQ(Change(series, change), CROUT_OK) << crout_last_error();
  ExpectSolves(a);

  const std::vector<double> u = RandomMatrix(kN, 2, 5), v = RandomMatrix(kN, 2, 6);
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = 0; i < kN; ++i) a[i + j * kN] += u[i] * v[j] + u[i + kN] * v[j + kN];
  }
  change.values = u.data();
  change.rows = change.cols = nullptr;
  change.v = v.data();
  change.n = kN;
  ASSERT_EQ(Change(series, change), CROUT_OK) << crout_last_error();
  ExpectSolves(a);
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
  EXPECT_EQ(daemon_.NewClient()->Describe(handle).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CApiSeriesTest, BeginsWithAFactorAndOutlivesItsConnection) {
  crout_factor* factor = Factor(a_);
  auto description = Sized<crout_description>();
  ASSERT_EQ(crout_describe(factor, &description), CROUT_OK);
  auto options = Sized<crout_series_options>();
  options.handle = description.handle;
  crout_series* series = Open(options);
  crout_disconnect(std::exchange(connection_, nullptr));
  ASSERT_EQ(Step(series, nullptr), CROUT_OK) << crout_last_error();
  ExpectSolves(a_);
  EXPECT_STREQ(result_.handle, description.handle);
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
  EXPECT_EQ(crout_release(factor), CROUT_OK);
}

TEST_F(CApiSeriesTest, StepsStartAtX) {
  std::vector<double> next = a_;
  for (double& entry : next) entry *= 1 + 1e-6;
  const auto iterations = [&](bool starts_at_x, const std::vector<double>& x0) {
    auto options = Sized<crout_series_options>();
    options.strategy = CROUT_REUSE;
    options.starts_at_x = starts_at_x ? 1 : 0;
    crout_series* series = Open(options);
    x_.assign(kN, 0);
    EXPECT_EQ(Step(series, &a_), CROUT_OK) << crout_last_error();
    x_ = x0;
    EXPECT_EQ(Step(series, &next), CROUT_OK) << crout_last_error();
    ExpectSolves(next);
    EXPECT_EQ(crout_series_close(series), CROUT_OK);
    return result_.old_iterations;
  };
  const std::vector<double> zeros(kN);
  EXPECT_GT(iterations(false, zeros), 0);
  EXPECT_GT(iterations(true, zeros), 0);
  const std::vector<double> solution = x_;
  EXPECT_EQ(iterations(true, solution), 0);
  EXPECT_EQ(x_, solution);
  auto options = Sized<crout_series_options>();
  options.starts_at_x = 1;
  crout_series* series = Open(options);
  x_[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Step(series, &a_), CROUT_INVALID_ARGUMENT);
  EXPECT_THAT(crout_last_error(), HasSubstr("start has a NaN"));
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
}

TEST_F(CApiSeriesTest, AFactorIsKeptOnRequest) {
  auto options = Sized<crout_series_options>();
  options.keep_factor = 1;
  crout_series* series = Open(options);
  ASSERT_EQ(Step(series, &a_), CROUT_OK);
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
  EXPECT_TRUE(daemon_.NewClient()->Describe(result_.handle).ok());
}

TEST_F(CApiSeriesTest, ASingularStepIsReportedAndTheSeriesContinues) {
  crout_series* series = Open();
  ASSERT_EQ(Step(series, &a_), CROUT_OK);
  const std::vector<double> x = x_;
  std::vector<double> singular = a_;
  for (int64_t i = 0; i < kN; ++i) singular[i] = 0;
  EXPECT_EQ(Step(series, &singular), CROUT_SINGULAR);
  EXPECT_EQ(x_, x);
  // The singular matrix is stored. A change can make it nonsingular.
  EXPECT_EQ(Step(series, nullptr), CROUT_SINGULAR);
  std::vector<int32_t> rows(kN);
  std::iota(rows.begin(), rows.end(), 0);
  const std::vector<int32_t> cols(kN);
  auto change = Sized<crout_change>();
  change.dtype = CROUT_FLOAT64;
  change.count = kN;
  change.values = a_.data();
  change.rows = rows.data();
  change.cols = cols.data();
  ASSERT_EQ(Change(series, change), CROUT_OK) << crout_last_error();
  ExpectSolves(a_);
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
}

TEST_F(CApiSeriesTest, ATextAndThenItsValues) {
  // The text lists a lower triangle, with its first entry on two lines.
  std::string text = "%%MatrixMarket matrix coordinate real general\n30 30 60\n1 1 1\n";
  for (int64_t i = 1; i <= kN; ++i) text += absl::StrCat(i, " ", i, " 5\n");
  for (int64_t i = 2; i <= kN; ++i) text += absl::StrCat(i, " ", i - 1, " 1\n");
  const auto matrix = [](const std::vector<double>& values) {
    std::vector<double> a(kN * kN);
    a[0] = values[0];
    for (int64_t i = 0; i < kN; ++i) a[i + i * kN] += values[1 + i];
    for (int64_t i = 1; i < kN; ++i) a[i + (i - 1) * kN] = values[kN + i];
    return a;
  };
  std::vector<double> values(2 * kN, 1);
  std::fill_n(values.begin() + 1, kN, 5);
  crout_series* series = Open();
  const crout_matrix rhs = Matrix(b_, kN, 1);
  const auto step = [&](int32_t dtype) {
    return crout_series_text(series, text.data(), text.size(), dtype, &rhs, x_.data(), kN,
                             &result_);
  };
  EXPECT_EQ(step(0), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_series_text(series, nullptr, 0, CROUT_FLOAT64, &rhs, x_.data(), kN, nullptr),
            CROUT_INVALID_ARGUMENT);
  ASSERT_EQ(step(CROUT_FLOAT64), CROUT_OK) << crout_last_error();
  ExpectSolves(matrix(values));
  for (double& value : values) value *= 1.5;
  values[0] = -2;
  crout_change change = ToValues(values);
  change.entry_digest = result_.entry_digest;
  EXPECT_EQ(std::string(result_.entry_digest).size(), 16);
  ASSERT_EQ(Change(series, change), CROUT_OK) << crout_last_error();
  ExpectSolves(matrix(values));
  --change.count;
  EXPECT_EQ(Change(series, change), CROUT_INVALID_ARGUMENT);
  EXPECT_THAT(crout_last_error(), HasSubstr("60 entries"));
  ASSERT_EQ(step(CROUT_FLOAT64), CROUT_OK) << crout_last_error();
  change = ToValues(values);
  change.entry_digest = "0123456789abcdef";
  EXPECT_EQ(Change(series, change), CROUT_FAILED_PRECONDITION);
  EXPECT_THAT(crout_last_error(), HasSubstr("0123456789abcdef"));
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
}

TEST_F(CApiSeriesTest, ASparseMatrixAndThenItsValues) {
  const Tridiagonal<double, int32_t> a(kN, 4, 1);
  auto options = Sized<crout_series_options>();
  options.strategy = CROUT_REFACTOR;
  options.algorithm = "multifrontal";
  crout_series* series = Open(options);
  const crout_matrix rhs = Matrix(b_, kN, 1);
  const crout_sparse by_rows = a.ByRows(CROUT_FLOAT64);
  const auto dense = [&](const std::vector<double>& values) {
    std::vector<double> full(kN * kN);
    for (size_t k = 0; k < values.size(); ++k) full[a.rows[k] + a.cols[k] * kN] = values[k];
    return full;
  };
  EXPECT_EQ(crout_series_sparse(series, nullptr, &rhs, x_.data(), kN, nullptr),
            CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_series_sparse(nullptr, &by_rows, &rhs, x_.data(), kN, nullptr),
            CROUT_INVALID_ARGUMENT);
  ASSERT_EQ(crout_series_sparse(series, &by_rows, &rhs, x_.data(), kN, &result_), CROUT_OK)
      << crout_last_error();
  ExpectSolves(dense(a.values));
  std::vector<double> values = a.values;  // by rows, as sent
  for (size_t k = 0; k < values.size(); ++k) values[k] += 0.01 * static_cast<double>(k);
  ASSERT_EQ(Change(series, ToValues(values)), CROUT_OK) << crout_last_error();
  ExpectSolves(dense(values));
  EXPECT_EQ(result_.strategy, CROUT_REFACTOR);
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
}

TEST_F(CApiSeriesTest, InvalidCallsAreRefused) {
  crout_series* none = nullptr;
  EXPECT_EQ(crout_series_open(nullptr, nullptr, &none), CROUT_INVALID_ARGUMENT);
  EXPECT_EQ(crout_series_open(connection_, nullptr, nullptr), CROUT_INVALID_ARGUMENT);
  crout_series_options options = {};
  EXPECT_EQ(crout_series_open(connection_, &options, &none), CROUT_INVALID_ARGUMENT);
  EXPECT_THAT(crout_last_error(), HasSubstr("struct_size"));
  for (const auto spoil : {+[](crout_series_options& o) { o.strategy = 4; },
                           +[](crout_series_options& o) { o.transpose = 3; },
                           +[](crout_series_options& o) { o.algorithm = "magic"; }}) {
    options = Sized<crout_series_options>();
    spoil(options);
    EXPECT_EQ(crout_series_open(connection_, &options, &none), CROUT_INVALID_ARGUMENT);
    EXPECT_EQ(none, nullptr);
  }
  EXPECT_EQ(Step(nullptr, &a_), CROUT_INVALID_ARGUMENT);
  crout_series* series = Open();
  EXPECT_EQ(Step(series, nullptr), CROUT_INVALID_ARGUMENT) << "no matrix yet";
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
  series = Open();
  const crout_matrix rhs = Matrix(b_, kN, 1);
  EXPECT_EQ(crout_series_step(series, &rhs, &rhs, nullptr, kN, nullptr), CROUT_INVALID_ARGUMENT);
  ASSERT_EQ(Step(series, &a_), CROUT_OK) << crout_last_error();
  const std::vector<double> values = {1, 2};
  const int32_t rows[] = {3, 0};
  const auto refused = [&](auto spoil) {
    auto change = Sized<crout_change>();
    change.dtype = CROUT_FLOAT64;
    change.count = 2;
    change.values = values.data();
    change.rows = change.cols = rows;
    spoil(change);
    EXPECT_EQ(Change(series, change), CROUT_INVALID_ARGUMENT);
  };
  refused([](crout_change& c) { c.dtype = 0; });
  refused([](crout_change& c) { c.count = 0; });
  refused([](crout_change& c) { c.count = kHuge; });
  refused([](crout_change& c) { c.values = nullptr; });
  refused([](crout_change& c) { c.cols = nullptr; });
  refused([](crout_change& c) { c.rows = c.cols = nullptr; });
  refused([&](crout_change& c) { c.v = values.data(); });
  refused([&](crout_change& c) { c.of_text = 1; });
  refused([](crout_change& c) { c.struct_size = 0; });
  EXPECT_EQ(crout_series_change(series, nullptr, &rhs, x_.data(), kN, nullptr),
            CROUT_INVALID_ARGUMENT);
  // The client has sent none of these changes.
  EXPECT_EQ(Step(series, nullptr), CROUT_OK) << crout_last_error();
  EXPECT_EQ(crout_series_close(series), CROUT_OK);
  EXPECT_EQ(crout_series_close(nullptr), CROUT_OK);
}

}  // namespace
}  // namespace crout::e2e::c_api_series_test
