// SPDX-License-Identifier: Apache-2.0

// Tests every complex method of the host: the factor ratio and info for each gallery kind, and the
// solve ratios of every solver with every operation.
#include <string>
#include <tuple>

#include "kernels/host/device/host_device.h"
#include "kernels/util/sanitizers.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/method_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::complex_gallery_test {
namespace {

class ComplexGalleryTest
    : public ::testing::TestWithParam<std::tuple<std::string, std::string, DType>> {
 protected:
  const std::string method_ = std::get<0>(GetParam());
  const ComplexGalleryKind& kind_ = ComplexGalleryNamed(std::get<1>(GetParam()));
  const DType dtype_ = std::get<2>(GetParam());
  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  MethodRunner runner_{*device_};
};

std::string TestName(const ::testing::TestParamInfo<ComplexGalleryTest::ParamType>& info) {
  return std::get<0>(info.param) + "_" + std::get<1>(info.param) + "_" +
         std::string(NameOf(std::get<2>(info.param)));
}

class ComplexFactorTest : public ComplexGalleryTest {
 protected:
  void Check(int64_t n) {
    SCOPED_TRACE(n);
    const ComplexMatrix a = Rounded(kind_.make(n), dtype_);
    ASSERT_OK_AND_ASSIGN(const MethodFactor factor, runner_.Factor(method_, a, n, dtype_));
    EXPECT_EQ(factor.info, kind_.singular_at(n));
    // With the unit diagonal in U, a singular matrix may have no factorization.
    if (factor.info > 0 && factor.unit_diagonal == UnitDiagonal::kU) return;
    EXPECT_LT(FactorRatio(a, n, factor.lu, factor.ipiv, factor.unit_diagonal, dtype_), kThreshold);
  }
};

TEST_P(ComplexFactorTest, FactorsEverySize) {
  if (!FitsType(kind_.name, dtype_)) GTEST_SKIP() << "entries beyond float32";
  for (const int64_t n : GallerySizes()) Check(n);
}

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  for (const ComplexGalleryKind& kind : ComplexGallery()) names.push_back(kind.name);
  return names;
}

const auto kTypes = ::testing::Values(DType::kComplex64, DType::kComplex128);

INSTANTIATE_TEST_SUITE_P(Pivoting, ComplexFactorTest,
                         ::testing::Combine(::testing::Values("getrf", "gem", "cmpp", "icmpp"),
                                            ::testing::ValuesIn(KindNames()), kTypes),
                         TestName);

// The kinds that need no pivoting.
INSTANTIATE_TEST_SUITE_P(
    WithoutPivoting, ComplexFactorTest,
    ::testing::Combine(::testing::Values("block_lu", "cm", "icm"),
                       ::testing::Values("helmholtz", "diagonally_dominant", "upper_triangular",
                                         "lower_triangular", "graded", "near_underflow",
                                         "near_overflow", "near_underflow_f64",
                                         "near_overflow_f64"),
                       kTypes),
    TestName);

class LargeComplexFactorTest : public ComplexFactorTest {};

TEST_P(LargeComplexFactorTest, FactorsOrder600) { Check(kSanitized ? 300 : 600); }

INSTANTIATE_TEST_SUITE_P(Pivoting, LargeComplexFactorTest,
                         ::testing::Combine(::testing::Values("getrf", "gem", "cmpp", "icmpp"),
                                            ::testing::Values("complex_random"), kTypes),
                         TestName);

INSTANTIATE_TEST_SUITE_P(WithoutPivoting, LargeComplexFactorTest,
                         ::testing::Combine(::testing::Values("block_lu", "cm", "icm"),
                                            ::testing::Values("diagonally_dominant"), kTypes),
                         TestName);

// Factors with the method and solves with every solver that supports its factors.
class ComplexSolveTest : public ComplexGalleryTest {
 protected:
  void CheckSolve(const ComplexMatrix& a, MethodFactor& factor, const TriangularSolver& solver,
                  Op op, int64_t nrhs) {
    SCOPED_TRACE(std::string(solver.name()) + " op " + std::to_string(static_cast<int>(op)));
    const int64_t n = factor.n;
    const ComplexMatrix truth = Rounded(RandomComplex(n, nrhs, 7), dtype_);
    const ComplexMatrix b = Rounded(Multiply(a, n, op, truth, nrhs), dtype_);
    ASSERT_OK_AND_ASSIGN(const ComplexMatrix x, runner_.Solve(solver.name(), factor, op, b, nrhs));
    EXPECT_LT(SolveRatio(a, n, op, x, b, nrhs, dtype_), kThreshold);
    if (n == 0 || n > 33) return;
    EXPECT_LT(ForwardRatio(x, truth, n, nrhs, ExactRcond(Applied(op, a, n), n), dtype_),
              kThreshold);
  }

  void Check(int64_t n) {
    SCOPED_TRACE(n);
    const ComplexMatrix a = Rounded(kind_.make(n), dtype_);
    ASSERT_OK_AND_ASSIGN(MethodFactor factor, runner_.Factor(method_, a, n, dtype_));
    for (const auto& solver : device_->solvers()) {
      if (!solver->traits().operands.contains(OperandKind::kDense)) continue;
      EXPECT_TRUE(solver->SupportsDense(dtype_));
      if (!solver->Supports(factor.unit_diagonal)) continue;
      for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
        for (const int64_t nrhs : {1, 5}) CheckSolve(a, factor, *solver, op, nrhs);
      }
    }
  }
};

TEST_P(ComplexSolveTest, SolvesWithEveryOperation) {
  for (const int64_t n : GallerySizes()) Check(n);
}

INSTANTIATE_TEST_SUITE_P(All, ComplexSolveTest,
                         ::testing::Combine(::testing::Values("getrf", "cmpp"),
                                            ::testing::Values("complex_random", "hermitian",
                                                              "helmholtz", "lower_triangular",
                                                              "shift", "condition_sqrt",
                                                              "near_underflow", "near_overflow"),
                                            kTypes),
                         TestName);

class LargeComplexSolveTest : public ComplexSolveTest {};

TEST_P(LargeComplexSolveTest, SolvesOrder600) { Check(kSanitized ? 300 : 600); }

INSTANTIATE_TEST_SUITE_P(Some, LargeComplexSolveTest,
                         ::testing::Combine(::testing::Values("getrf", "cmpp"),
                                            ::testing::Values("complex_random"), kTypes),
                         TestName);

}  // namespace
}  // namespace crout::testing::complex_gallery_test
