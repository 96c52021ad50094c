// SPDX-License-Identifier: Apache-2.0

// Tests croutctl with complex matrices.
#include <cmath>
#include <complex>
#include <utility>

#include "tests/e2e/croutctl/croutctl.h"

namespace crout::e2e::croutctl_complex_test {
namespace {

// [2, 1-i; 1+i, 3], whose inverse is [3, -1+i; -1-i, 2] / 4.
constexpr char kHermitian[] =
    "%%MatrixMarket matrix coordinate complex hermitian\n2 2 3\n1 1 2 0\n2 1 1 1\n2 2 3 0\n";

TEST_F(CroutctlTest, ComplexFilesAreComplexMatrices) {
  const std::string hermitian = directory_.File("hermitian.mtx");
  const std::string x = directory_.File("x.mtx");
  WriteFile(hermitian, kHermitian);
  const Json factor = RunJson({"factor", hermitian, "--condition"});
  EXPECT_EQ(factor["matrix_dtype"], "c128");
  EXPECT_EQ(factor["factor_dtype"], "c128");
  EXPECT_EQ(factor["nnz"], 4);
  const std::string handle = factor["handle"];
  const auto near = [](std::vector<double> values) {
    return ::testing::Pointwise(::testing::DoubleNear(1e-15), values);
  };

  EXPECT_LT(RunJson({"solve", handle, "--ones", "-o", x})["backward_error"], 1e-15);
  EXPECT_THAT(ReadFile(x), ::testing::StartsWith("%%MatrixMarket matrix array complex general\n"));
  EXPECT_THAT(ArrayValues(x), near({0.5, 0.25, 0.25, -0.25}));
  RunJson({"solve", handle, "--ones", "--conjugate-transpose", "-o", x});
  EXPECT_THAT(ArrayValues(x), near({0.5, 0.25, 0.25, -0.25}));
  RunJson({"solve", handle, "--ones", "--transpose", "-o", x});
  EXPECT_THAT(ArrayValues(x), near({0.5, -0.25, 0.25, 0.25}));

  // Right-hand sides are read from complex and real files, and from output of croutctl.
  const std::string b = directory_.File("b.mtx");
  WriteFile(b, "%%MatrixMarket matrix array complex general\n2 1\n3 -1\n4 1\n");  // A [1; 1]
  RunJson({"solve", handle, b, "-o", x});
  EXPECT_THAT(ArrayValues(x), near({1, 0, 1, 0}));
  const std::string y = directory_.File("y.mtx");
  RunJson({"lu", hermitian, x, "-o", y});
  EXPECT_THAT(ArrayValues(y), near({0.5, 0.25, 0.25, -0.25}));
  const std::string real = directory_.File("real.mtx");
  WriteFile(real, "%%MatrixMarket matrix array real general\n2 1\n1\n1\n");
  RunJson({"lu", hermitian, real, "-o", y});
  EXPECT_THAT(ArrayValues(y), near({0.5, 0.25, 0.25, -0.25}));
  EXPECT_EQ(RunJson({"lu", hermitian, "--ones", "--dtype=c64"})["factor"]["factor_dtype"], "c64");
}

TEST_F(CroutctlTest, ARealFactorSolvesForComplexFilesAndComplexOnes) {
  const std::string two = directory_.File("two.mtx");
  const std::string b = directory_.File("b.mtx");
  const std::string x = directory_.File("x.mtx");
  WriteFile(two, "%%MatrixMarket matrix array real general\n1 1\n2\n");
  WriteFile(b, "%%MatrixMarket matrix array complex general\n1 1\n3 -1\n");
  const std::string handle = RunJson({"factor", two})["handle"];
  RunJson({"solve", handle, b, "-o", x});
  EXPECT_EQ(ReadFile(x), "%%MatrixMarket matrix array complex general\n1 1\n1.5 -0.5\n");
  RunJson({"solve", handle, "--ones", "--nrhs=2", "--dtype=c64", "-o", x});
  EXPECT_EQ(ReadFile(x), "%%MatrixMarket matrix array complex general\n1 2\n0.5 0\n0.5 0\n");
}

TEST_F(CroutctlTest, ComplexDeterminantsAndFactorsAreWritten) {
  const std::string matrix = directory_.File("c.mtx");
  WriteFile(matrix,
            "%%MatrixMarket matrix coordinate complex general\n"
            "2 2 3\n1 1 0 1\n2 1 1 1\n2 2 2 0\n");  // the determinant is 2i
  const Json factor = RunJson({"factor", matrix, "--determinant", "--algorithm=getrf"});
  EXPECT_NEAR(factor["determinant"]["sign"].get<double>(), 0, 1e-15);
  EXPECT_NEAR(factor["determinant"]["sign_imaginary"].get<double>(), 1, 1e-15);
  EXPECT_NEAR(factor["determinant"]["log_abs"].get<double>(), std::log(2), 1e-15);

  const std::string prefix = directory_.File("c");
  RunJson({"download", factor["handle"], "-o", prefix});
  using Complex = std::complex<double>;
  std::vector<Complex> parts[2];
  for (const auto& [name, values] : {std::pair("_L.mtx", &parts[0]), {"_U.mtx", &parts[1]}}) {
    const std::vector<double> numbers = ArrayValues(prefix + name);
    ASSERT_EQ(numbers.size(), 8u);
    for (size_t i = 0; i < 8; i += 2) values->emplace_back(numbers[i], numbers[i + 1]);
  }
  const auto p = ArrayValues(prefix + "_p.mtx");
  ASSERT_EQ(p.size(), 2u);
  const std::vector<Complex> a = {{0, 1}, {1, 1}, 0, 2};  // column-major
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 2; ++j) {
      const Complex sum = parts[0][i] * parts[1][2 * j] + parts[0][i + 2] * parts[1][2 * j + 1];
      EXPECT_NEAR(std::abs(sum - a[static_cast<size_t>(p[i]) - 1 + 2 * j]), 0, 1e-15);
    }
    EXPECT_EQ(parts[0][3 * i], 1.0);
  }
}

TEST_F(CroutctlTest, AComplexFileOfARealTypeIsRefused) {
  const std::string hermitian = directory_.File("hermitian.mtx");
  WriteFile(hermitian, kHermitian);
  const Finished finished = daemon_.Ctl({"factor", hermitian, "--dtype=f64"});
  EXPECT_EQ(finished.exit_code, 12);
  EXPECT_THAT(finished.errors,
              ::testing::HasSubstr("line 1: the matrix is complex; the requested type is real"));
  const Finished piped = RunInShell({"factor", "-"}, "<" + hermitian);
  EXPECT_EQ(piped.exit_code, 0) << piped.errors;  // standard input is a file
}

}  // namespace
}  // namespace crout::e2e::croutctl_complex_test
