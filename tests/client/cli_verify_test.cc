// SPDX-License-Identifier: Apache-2.0

// Tests `croutctl verify`: its own Matrix Market reader, and backward errors against values
// computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "client/cli/commands/backward_error.h"
#include "client/cli/input/local_matrix.h"

namespace crout::cli::cli_verify_test {
namespace {

using Complex = std::complex<double>;
using ::testing::HasSubstr;

class CliVerifyTest : public ::testing::Test {
 protected:
  ~CliVerifyTest() override { unlink(path_.c_str()); }

  absl::StatusOr<LocalMatrix> Load(const std::string& text) const {
    std::ofstream(path_) << text;
    return LocalMatrix::Load(path_);
  }
  // Returns the elements in row-major order.
  std::vector<Complex> Elements(const std::string& text) const {
    const auto matrix = Load(text);
    EXPECT_TRUE(matrix.ok()) << matrix.status();
    if (!matrix.ok()) return {};
    std::vector<Complex> elements(static_cast<size_t>(matrix->rows() * matrix->cols()));
    matrix->ForEach([&](int64_t i, int64_t j, Complex value) {
      elements[static_cast<size_t>(i * matrix->cols() + j)] += value;
    });
    return elements;
  }

  const std::string path_ = ::testing::TempDir() + "/crout_verify_test." + std::to_string(getpid());
};

constexpr char kBanner[] = "%%MatrixMarket matrix ";

TEST_F(CliVerifyTest, ReadsEveryFieldAndSymmetry) {
  const std::string b = kBanner;
  const Complex i(0, 1);
  const auto are = [](std::vector<Complex> values) { return ::testing::ElementsAreArray(values); };
  EXPECT_THAT(Elements(b + "array real general\n% c\n2 2\n1\n2\n3\n4\n"), are({1, 3, 2, 4}));
  EXPECT_THAT(Elements(b + "array integer symmetric\n2 2\n1\n2\n3\n"), are({1, 2, 2, 3}));
  EXPECT_THAT(Elements(b + "array real skew-symmetric\n2 2\n5\n"), are({0, -5, 5, 0}));
  EXPECT_THAT(Elements(b + "coordinate pattern general\n1 3 2\n1 3\n1 1\n"), are({1, 0, 1}));
  EXPECT_THAT(Elements(b + "coordinate complex hermitian\n2 2 2\n1 1 2 0\n2 1 1 1\n"),
              are({2, 1.0 - i, 1.0 + i, 0}));
  EXPECT_THAT(Elements(b + "coordinate real general\n1 1 2\n1 1 2\n1 1 3\n"), are({5}));
  EXPECT_THAT(Elements("1 2\n3 4\n"), are({1, 2, 3, 4}));
}

TEST_F(CliVerifyTest, HostileTextsAreRefusedWithTheirLine) {
  const std::string b = kBanner;
  const std::vector<std::pair<std::string, std::string>> hostile = {
      {"%\n", "line 1: no Matrix Market banner"},
      {b + "array pattern general\n1 1\n", "line 1: unsupported type of matrix"},
      {b + "array real hermitian\n1 1\n1\n", "line 1: unsupported type of matrix"},
      {b + "array real general\n", "no size line"},
      {b + "array real general\n-1 1\n", "line 2: no size line"},
      {b + "array real symmetric\n1 2\n", "line 2: no size line"},
      {b + "coordinate real general\n1 1 -1\n", "line 2: no size line"},
      {b + "array real general\n1000000000000 1000000\n1\n", "line 4: invalid element"},
      {b + "array real general\n9223372036854775807 9223372036854775807\n", "invalid element"},
      {b + "coordinate real general\n1 1 9223372036854775807\n1 1 1\n", "line 4: invalid entry"},
      {b + "coordinate real general\n1 1 1\n2 1 1\n", "line 3: invalid entry"},
      {b + "coordinate real general\n1 1 1\n0 1 1\n", "line 3: invalid entry"},
      {b + "coordinate real general\n1 1 1\n1 1 1 1\n", "line 3: invalid entry"},
      {b + "array complex general\n1 1\n1\n", "line 3: invalid element"},
      {b + "array real general\n1 1\n" + std::string(5000, '1') + "\n", "line 3: the line is too"},
  };
  for (const auto& [text, why] : hostile) {
    const auto matrix = Load(text);
    EXPECT_EQ(matrix.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(matrix.status().message()), HasSubstr(why)) << text;
  }
  // A matrix with zero rows is read quickly, whatever number of columns it declares.
  EXPECT_TRUE(Load(b + "array real general\n0 9223372036854775807\n").ok());
}

TEST_F(CliVerifyTest, BackwardErrorsAreThoseOfTheContract) {
  const auto a = Load("2 1\n0 4\n"), x = Load("1\n1\n"), b = Load("3\n5\n");
  const auto errors = ComputeBackwardErrors(*a, Operation::kNone, *x, *b);
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_DOUBLE_EQ(errors->normwise, 1.0 / (4 * 1 + 5));
  EXPECT_DOUBLE_EQ(errors->componentwise, 1.0 / (4 + 5));
  const auto transposed = ComputeBackwardErrors(*a, Operation::kTranspose, *x, *b);
  // A^T x = (2, 5) and |A^T| = 5.
  EXPECT_DOUBLE_EQ(transposed->normwise, 1.0 / (5 * 1 + 5));
  EXPECT_DOUBLE_EQ(transposed->componentwise, 1.0 / (2 + 3));
}

TEST_F(CliVerifyTest, ComplexSystemsAndTheirConjugates) {
  const auto a = Load("1+1j 0\n2 1j\n"), x = Load("1\n1\n");
  const auto b = Load("1+1j\n2+1j\n"), c = Load("3-1j\n-1j\n");
  EXPECT_EQ(ComputeBackwardErrors(*a, Operation::kNone, *x, *b)->normwise, 0);
  EXPECT_EQ(ComputeBackwardErrors(*a, Operation::kConjugateTranspose, *x, *c)->normwise, 0);
  EXPECT_GT(ComputeBackwardErrors(*a, Operation::kTranspose, *x, *c)->normwise, 0.1);
}

TEST_F(CliVerifyTest, TheWorstColumnCountsAndNanIsSeen) {
  const auto a = Load("1 0\n0 1\n"), x = Load("1 2 nan\n1 2 0\n"), b = Load("1 4 0\n1 2 0\n");
  EXPECT_TRUE(std::isnan(ComputeBackwardErrors(*a, Operation::kNone, *x, *b)->normwise));
  const auto fine = Load("1 2\n1 2\n"), wanted = Load("1 4\n1 2\n");
  EXPECT_DOUBLE_EQ(ComputeBackwardErrors(*a, Operation::kNone, *fine, *wanted)->normwise, 2.0 / 6);
}

TEST_F(CliVerifyTest, WhatIsNoSystemIsRefused) {
  const auto a = Load("1 0\n0 1\n"), wide = Load("1 0\n"), x = Load("1\n1\n");
  const auto claims = Load(std::string(kBanner) + "coordinate real general\n2 1 0\n");
  const auto status = [&](const auto& matrix, const auto& solution, const auto& rhs) {
    return ComputeBackwardErrors(*matrix, Operation::kNone, *solution, *rhs).status().code();
  };
  EXPECT_EQ(status(wide, x, x), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status(a, wide, x), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status(a, x, wide), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status(a, claims, x), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status(a, x, claims), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace crout::cli::cli_verify_test
