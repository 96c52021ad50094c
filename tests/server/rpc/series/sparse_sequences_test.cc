// SPDX-License-Identifier: Apache-2.0

// Tests sequences of matrices from applications, each with one pattern: hourly power flows and
// Newton steps. Each sequence is solved with Refactorize and with SolveSeries, with a single
// analysis.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/util/sanitizers.h"
#include "tests/server/rpc/series/sparse_stream_fixture.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::sparse_sequences_test {
namespace {

constexpr size_t kMaxSteps = kSanitized ? 4 : 100;

// Returns the matrices below `folder` in the order of the index.
std::vector<RealMatrix> FilesBelow(const std::string& folder) {
  std::vector<RealMatrix> files;
  for (const RealMatrix& file : RealMatrixIndex()) {
    const bool is_jacobian = file.file.rfind(folder + "/J_", 0) == 0;
    if (is_jacobian && files.size() < kMaxSteps) files.push_back(file);
  }
  return files;
}

Triplets EntriesOf(const RealMatrix& file) {
  std::vector<SparseEntry> entries = ReadSparseMatrix(file).value();
  std::sort(entries.begin(), entries.end(), [](const SparseEntry& a, const SparseEntry& b) {
    return std::tie(a.row, a.column) < std::tie(b.row, b.column);
  });
  Triplets triplets;
  for (const SparseEntry& entry : entries) {
    triplets.push_back({entry.row, entry.column, entry.value.real()});
  }
  return triplets;
}

using Case = std::tuple<v1::Algorithm, const char*>;

class RpcSparseSequencesTest : public RpcSparseStreamTest,
                               public ::testing::WithParamInterface<Case> {
 protected:
  RpcSparseSequencesTest() : RpcSparseStreamTest(std::get<0>(GetParam())) {}

  // Returns false if the matrices are not available.
  bool Read() {
    const std::vector<RealMatrix> files =
        FilesBelow(std::string("seq_powerflow/") + std::get<1>(GetParam()));
    for (const RealMatrix& file : files) steps_.push_back(EntriesOf(file));
    if (!files.empty()) b_.assign(files.front().n, 1.0);
    return steps_.size() > 1;
  }

  std::vector<Triplets> steps_;
};

TEST_P(RpcSparseSequencesTest, Refactorize) {
  if (!Read()) GTEST_SKIP() << "no matrices";
  Start();
  v1::Factor factor = MustFactor(Header(n(), steps_.front()), steps_.front());
  EXPECT_FALSE(factor.sparse().analysis_reused());
  for (size_t step = 1; step < steps_.size(); ++step) {
    SCOPED_TRACE(step);
    ASSERT_TRUE(Refactorize(factor.handle(), n(), steps_[step], &factor).ok());
    EXPECT_TRUE(factor.sparse().analysis_reused());
    EXPECT_EQ(factor.sparse().perturbed_pivots(), 0);
    ExpectSolves(factor.handle(), n(), steps_[step]);
  }
}

TEST_P(RpcSparseSequencesTest, SolveSeries) {
  if (!Read()) GTEST_SKIP() << "no matrices";
  Start();
  Open(v1::SERIES_STRATEGY_REFACTOR);
  for (size_t step = 0; step < steps_.size(); ++step) {
    SCOPED_TRACE(step);
    StreamAnswer answer;
    ASSERT_TRUE(Step(steps_[step], /*values_alone=*/step > 0, &answer)) << Finish().error_message();
    ExpectSolved(answer, steps_[step]);
    ASSERT_TRUE(answer.factor);
    EXPECT_EQ(answer.factor->sparse().analysis_reused(), step > 0);
  }
  EXPECT_TRUE(Finish().ok());
}

INSTANTIATE_TEST_SUITE_P(Sequences, RpcSparseSequencesTest,
                         ::testing::Combine(::testing::Values(v1::ALGORITHM_KLU,
                                                              v1::ALGORITHM_MULTIFRONTAL),
                                            ::testing::Values("ACTIVSg200_hourly", "case118_newton",
                                                              "case1354pegase_newton")),
                         [](const auto& info) {
                           return AlgorithmName(std::get<0>(info.param)) + "_" +
                                  std::get<1>(info.param);
                         });

}  // namespace
}  // namespace crout::testing::sparse_sequences_test
