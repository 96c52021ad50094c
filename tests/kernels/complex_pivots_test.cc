// SPDX-License-Identifier: Apache-2.0

// Tests that pivots of complex matrices are chosen by |Re| + |Im|, as in LAPACK, and not by the
// modulus.
#include <complex>
#include <utility>

#include "kernels/host/device/host_device.h"
#include "kernels/scalar.h"
#include "tests/support/runners/method_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::complex_pivots_test {
namespace {

using Complex = std::complex<double>;

double Modulus(Complex x) { return std::abs(x); }

// Returns the interchanges of Gaussian elimination whose pivot is the first element with the
// largest `measure`.
std::vector<int64_t> PivotsBy(double (*measure)(Complex), ComplexMatrix a, int64_t n) {
  std::vector<int64_t> ipiv(n);
  for (int64_t k = 0; k < n; ++k) {
    int64_t p = k;
    for (int64_t i = k; i < n; ++i) {
      if (measure(a[i + k * n]) > measure(a[p + k * n])) p = i;
    }
    ipiv[k] = p + 1;
    for (int64_t j = 0; j < n; ++j) std::swap(a[k + j * n], a[p + j * n]);
    for (int64_t i = k + 1; i < n; ++i) a[i + k * n] /= a[k + k * n];
    for (int64_t j = k + 1; j < n; ++j) {
      for (int64_t i = k + 1; i < n; ++i) a[i + j * n] -= a[i + k * n] * a[k + j * n];
    }
  }
  return ipiv;
}

class ComplexPivotsTest : public ::testing::TestWithParam<DType> {
 protected:
  std::vector<int64_t> Pivots(std::string_view method, const ComplexMatrix& a, int64_t n,
                              const LuParameters& parameters = {}) {
    const auto factor = runner_.Factor(method, a, n, GetParam(), parameters);
    EXPECT_OK(factor);
    return factor.ok() ? factor->ipiv : std::vector<int64_t>{};
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  MethodRunner runner_{*device_};
};

TEST_P(ComplexPivotsTest, ChoosesHandComputedPivots) {
  // |5| > |3.4 + 3.4 i|, but 5 < 3.4 + 3.4.
  const ComplexMatrix a = {5, {3.4, 3.4}, 1, {0, 1}};
  const std::vector<int64_t> exchanged = {2, 2};
  for (const char* method : {"getrf", "gem", "cmpp", "icmpp"}) {
    EXPECT_EQ(Pivots(method, a, 2), exchanged) << method;
  }
  ASSERT_OK_AND_ASSIGN(const DirectSolution direct,
                       runner_.SolveDirectly(a, 2, {1, 0}, 1, GetParam()));
  EXPECT_EQ(direct.ipiv, exchanged);
}

TEST_P(ComplexPivotsTest, ChoosesPivotsLikeLapack) {
  const int64_t n = 150;
  const ComplexMatrix a = Rounded(RandomComplex(n, n, 3), GetParam());
  const std::vector<int64_t> by_parts = PivotsBy(Abs1<Complex>, a, n);
  EXPECT_NE(PivotsBy(Modulus, a, n), by_parts) << "the matrix tells nothing";
  for (const char* method : {"getrf", "gem", "cmpp", "icmpp"}) {
    EXPECT_EQ(Pivots(method, a, n), by_parts) << method;
  }
  ASSERT_OK_AND_ASSIGN(const DirectSolution direct,
                       runner_.SolveDirectly(a, n, RandomComplex(n, 1, 4), 1, GetParam()));
  EXPECT_EQ(direct.ipiv, by_parts);
}

TEST_P(ComplexPivotsTest, AppliesPivotRulesToSumOfParts) {
  LuParameters parameters;
  // |Re| + |Im| of 3 + 4i is 7, which is within (6, 8]; the modulus 5 is not. 9 is above the
  // interval.
  parameters.pivoting = PivotCriterion{.rule = PivotRule::kInterval, .low = 6, .high = 8};
  const ComplexMatrix interval = {{3, 4}, 9, 0, 7};
  // |Re| + |Im| of 3 + 3i is 6, which is at least 0.8 * 7; the modulus 4.2 is not.
  const ComplexMatrix threshold = {{3, 3}, 7, 0, 1};
  for (const char* method : {"cmpp", "icmpp"}) {
    parameters.pivoting->rule = PivotRule::kInterval;
    EXPECT_EQ(Pivots(method, interval, 2, parameters)[0], 1);
    parameters.pivoting->low = 7.5;
    EXPECT_EQ(Pivots(method, interval, 2, parameters)[0], 2);
    parameters.pivoting->low = 6;
    parameters.pivoting->rule = PivotRule::kThreshold;
    parameters.pivoting->threshold = 0.8;
    EXPECT_EQ(Pivots(method, threshold, 2, parameters)[0], 1);
    parameters.pivoting->threshold = 0.9;
    EXPECT_EQ(Pivots(method, threshold, 2, parameters)[0], 2);
  }
}

// Pivots with one part equal to zero.
TEST_P(ComplexPivotsTest, AcceptsPivotsWithOneZeroPart) {
  for (const Complex pivot : {Complex{1, 0}, Complex{0, 1}, Complex{0, 0}}) {
    for (const char* method : {"getrf", "gem", "cmpp", "icmpp", "cm", "icm", "block_lu"}) {
      ASSERT_OK_AND_ASSIGN(const MethodFactor factor,
                           runner_.Factor(method, {2, 0, 1, pivot}, 2, GetParam()));
      EXPECT_EQ(factor.info, pivot == Complex{} ? 2 : 0) << method << " " << pivot;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ComplexPivotsTest,
                         ::testing::Values(DType::kComplex64, DType::kComplex128),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::complex_pivots_test
