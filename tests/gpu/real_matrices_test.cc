// SPDX-License-Identifier: Apache-2.0

// Tests factorizations and solves of real matrices on the GPU.
#include <cstdio>
#include <string>

#include "kernels/jobs/solve.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/ratios.h"

namespace crout::real_matrices_test {
namespace {

using ::crout::testing::kThreshold;
using ::crout::testing::RandomMatrix;
using ::crout::testing::RealMatrix;

constexpr int64_t kLargest = 10000;     // a dense host copy has 0.8 GB
constexpr int64_t kLargestRatio = 700;  // the ratio costs O(n^3) on the host

class GpuRealMatricesTest : public GpuTest {};

void CheckMatrix(Bench& gpu, const RealMatrix& matrix) {
  SCOPED_TRACE(matrix.file);
  const auto a = testing::ReadRealMatrix(matrix);
  ASSERT_TRUE(a.ok()) << a.status();
  const int64_t n = matrix.n;
  auto factor = gpu.jobs().Factor(*a, n, DType::kFloat64, Layout::kColumnMajor,
                                  OptionsOf(Gpu(), DType::kFloat64));
  ASSERT_TRUE(factor.ok()) << factor.status();
  const auto ratio = n <= kLargestRatio ? FactorRatioOf : ProbedFactorRatioOf;
  EXPECT_LT(ratio(gpu, *factor, *a), kThreshold);
  if (factor->summary.info > 0) return;
  const HostMatrix b = RandomMatrix(n, 2, 1);
  SolveOptions options;
  options.solver = SolverOf(Gpu(), "getrs");
  options.max_refinement_steps = 2;
  auto solved = gpu.jobs().Solve(*factor, b, 2, DType::kFloat64, Layout::kColumnMajor, options);
  ASSERT_TRUE(solved.ok()) << solved.status();
  EXPECT_LT(testing::BackwardError(*a, n, Op::kNone, solved->x, b, 2), 1e-14);
}

TEST_F(GpuRealMatricesTest, FactorsAndSolves) {
  const auto directory = testing::MatricesDirectory();
  if (!directory) GTEST_SKIP() << "no real matrices: set CROUT_MATRICES";
  Bench gpu(Gpu());
  int checked = 0;
  int missing = 0;
  std::string files;
  for (const RealMatrix& matrix : testing::RealMatrixIndex()) {
    if (matrix.field == "complex" || matrix.n > kLargest) continue;
    // The directory may contain only some matrices of the index.
    std::FILE* file = std::fopen((*directory + "/" + matrix.file).c_str(), "rb");
    if (file == nullptr) {
      ++missing;
      continue;
    }
    std::fclose(file);
    CheckMatrix(gpu, matrix);
    ++checked;
    files += matrix.file + " ";
  }
  // The result file records how many matrices are missing.
  std::printf("real matrices: %d checked, %d of the index not there\n", checked, missing);
  RecordProperty("checked", checked);
  RecordProperty("missing", missing);
  RecordProperty("files", files);
  EXPECT_GT(checked, 0);
}

}  // namespace
}  // namespace crout::real_matrices_test
