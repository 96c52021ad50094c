// SPDX-License-Identifier: Apache-2.0

// Tests factorizations of and solves with the shared matrices that are not complex: all up to order
// 500, and one in four up to order 1500.
#include <cmath>
#include <iostream>
#include <map>
#include <string>

#include "kernels/host/device/host_device.h"
#include "kernels/jobs/factorize.h"
#include "kernels/util/sanitizers.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::real_matrices_test {
namespace {

constexpr int64_t kLargest = kSanitized ? 150 : 1500;
constexpr int64_t kMedium = kSanitized ? 150 : 500;  // above this order, one in four is tested
constexpr int64_t kLargestRatio = 300;               // largest order for GET01, which costs O(n^3)

class RealMatricesTest : public ::testing::Test {
 protected:
  void Check(const RealMatrix& real, const std::string& algorithm);
  // Expects that equilibration does not change the values that the summary reports for A.
  void CheckScaled(const RealMatrix& real, const HostMatrix& a, FactorRequest request,
                   const FactorSummary& plain);

  int scaled_ = 0;
  int checked_ = 0;
  int not_square_ = 0;
  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

bool Taken(const RealMatrix& real) {
  if (real.field == "complex" || real.n > kLargest) return false;
  return real.n <= kMedium || real.nnz % 4 == 0;
}

void RealMatricesTest::Check(const RealMatrix& real, const std::string& algorithm) {
  SCOPED_TRACE(real.file + " " + algorithm);
  const absl::StatusOr<HostMatrix> a = ReadRealMatrix(real);
  if (!a.ok()) {  // not square
    ++not_square_;
    return;
  }
  ++checked_;
  const int64_t n = real.n;
  ASSERT_EQ(static_cast<int64_t>(a->size()), n * n);
  FactorRequest request;
  request.algorithm = algorithm;
  request.condition = true;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(*a, n, request));
  const FactorSummary& summary = factor.summary;
  if (summary.info > 0) {
    // A zero pivot is accepted only if the matrix is nearly singular or its condition is unknown.
    EXPECT_TRUE(real.condition > 1e12 || real.condition == 0) << real.note;
    return;
  }
  if (n <= kLargestRatio) {
    ASSERT_OK_AND_ASSIGN(const HostFactor parts, runner_.Download(factor));
    EXPECT_LT(FactorRatio(*a, n, parts.lu, parts.ipiv, summary.unit_diagonal, DType::kFloat64),
              kThreshold);
  }
  if (real.condition > 0 && real.condition < 1e13) {
    EXPECT_LT(RcondRatio(*summary.rcond, 1 / real.condition), kThreshold);
  }
  CheckScaled(real, *a, request, summary);
  const HostMatrix b = Multiply(*a, n, Op::kNone, HostMatrix(n, 1.0), 1);
  ASSERT_OK_AND_ASSIGN(const Solution solution, runner_.Solve(factor, b, 1, {}));
  EXPECT_LT(*solution.summary.backward_error, kThreshold * 0x1p-53);
  EXPECT_LT(SolveRatio(*a, n, Op::kNone, solution.x, b, 1, DType::kFloat64), kThreshold);
}

void RealMatricesTest::CheckScaled(const RealMatrix& real, const HostMatrix& a,
                                   FactorRequest request, const FactorSummary& plain) {
  EXPECT_FALSE(plain.is_poor()) << *plain.quality;
  request.equilibrate = EquilibrateMode::kAuto;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, real.n, request));
  const FactorSummary& summary = factor.summary;
  EXPECT_FALSE(summary.is_poor()) << *summary.quality;
  const bool scaled = summary.row_scaled || summary.col_scaled;
  EXPECT_EQ(summary.rcond_scaled.has_value(), scaled);
  if (!scaled || real.condition > 1e13) return;
  ++scaled_;
  EXPECT_LT(RcondRatio(*summary.rcond, *plain.rcond), kThreshold);
}

TEST_F(RealMatricesTest, FactorsAndSolves) {
  if (!MatricesDirectory()) {
    GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES (ALL TESTS SKIPPED)";
  }
  std::map<std::string, int> of_sequence;
  for (const RealMatrix& real : RealMatrixIndex()) {
    if (!Taken(real)) continue;
    // Tests three matrices of a sequence, because they differ only in their values.
    const bool sequence = real.file.rfind("seq_", 0) == 0;
    if (sequence && ++of_sequence[real.file.substr(0, real.file.rfind('/'))] > 3) continue;
    Check(real, "getrf");
    if (real.n <= kLargestRatio) Check(real, "cmpp");
  }
  std::cout << "real matrices: " << checked_ << " factorizations checked, " << scaled_
            << " with a condition that equilibration hides, " << not_square_
            << " files without a square matrix\n";
  RecordProperty("matrices", checked_);
  EXPECT_GT(checked_, 10);
}

}  // namespace
}  // namespace crout::testing::real_matrices_test
