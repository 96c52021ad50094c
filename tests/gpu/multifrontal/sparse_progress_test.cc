// SPDX-License-Identifier: Apache-2.0

// Tests the reported progress of a long sparse factorization on the GPU.
#include <algorithm>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/sparse/ordering_process.h"
#include "tests/gpu/harness/gpu_testing.h"
#include "tests/kernels/jobs/sparse_job_testing.h"
#include "tests/kernels/sparse_lu_testing.h"

namespace crout::sparse_progress_test {
namespace {

class SparseProgressTest : public GpuTest {};

TEST_F(SparseProgressTest, ReportsTheNumberOfFinalColumns) {
  constexpr int64_t kM = 56, kN = kM * kM * kM;
  const testing::PackedSparse a = testing::OfType(testing::GridEntries(kM, 3), kN, DType::kFloat64);
  AnalysisOptions options;
  options.ordering_program = OrderingProgram();
  ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(a.view(), options, [] { return false; }));
  ASSERT_GT(analysis.flops, 1e11) << "the host waits every 1e10";
  Bench bench(Gpu());
  const SparseLu* const lu = testing::MethodOf(Gpu(), "multifrontal").lu;
  ASSERT_OK_AND_ASSIGN(const size_t of_matrix, SparseBytes(kN, a.nonzeros, DType::kFloat64));
  ASSERT_OK_AND_ASSIGN(const size_t of_factor, lu->FactorBytes(analysis, DType::kFloat64));
  ASSERT_OK_AND_ASSIGN(const size_t beside,
                       lu->WorkspaceBytes(analysis, DType::kFloat64, size_t{1} << 40));
  const std::byte* const bytes = a.view().data;
  const Buffer matrix = bench.Put(std::vector<std::byte>(bytes, bytes + of_matrix));
  const Buffer factor = bench.Allocate(of_factor);
  const Buffer workspace = bench.Allocate(beside);
  std::vector<int64_t> reported;
  const auto note = [&] {
    reported.push_back(bench.context().report().ColumnsDone());
    return false;
  };
  ASSERT_OK(lu->Factor(bench.context(), analysis, {matrix.data(), DType::kFloat64, kN, a.nonzeros},
                       DType::kFloat64, {factor.data(), of_factor}, {workspace.data(), beside},
                       note, nullptr));
  ASSERT_FALSE(reported.empty());
  EXPECT_EQ(reported.front(), 0);
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  EXPECT_GT(reported.back(), kN / 2);
  EXPECT_LT(reported.back(), kN);
  EXPECT_GT(std::set<int64_t>(reported.begin(), reported.end()).size(), 3u);
}

}  // namespace
}  // namespace crout::sparse_progress_test
