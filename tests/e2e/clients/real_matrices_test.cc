// SPDX-License-Identifier: Apache-2.0

// Sends matrices from applications as texts to the whole service, and checks the backward errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "crout/batch.h"
#include "crout/factor.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::real_matrices_test {
namespace {

using crout::testing::HostMatrix;
using crout::testing::RealMatrix;

// Returns one matrix of each directory. Its order is at most kLargest, because larger ones take too
// long.
std::vector<RealMatrix> OneOfEach() {
  constexpr int64_t kLargest = 1300;
  std::set<std::string> seen;
  std::vector<RealMatrix> chosen;
  for (const RealMatrix& matrix : crout::testing::RealMatrixIndex()) {
    const std::string directory = matrix.file.substr(0, matrix.file.find('/'));
    if (matrix.n < 10 || matrix.n > kLargest || matrix.field == "complex") continue;
    if (directory == "malformed_edge" || directory == "hb_originals") continue;
    if (seen.insert(directory).second) chosen.push_back(matrix);
  }
  return chosen;
}

class RealMatricesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!crout::testing::MatricesDirectory().has_value()) {
      GTEST_SKIP() << "no real matrices: set CROUT_MATRICES to their directory";
    }
  }
  std::string Path(const std::string& file) const {
    return *crout::testing::MatricesDirectory() + "/" + file;
  }
};

TEST_F(RealMatricesTest, FactorAndSolveWithASmallBackwardError) {
  Daemon daemon;
  const auto client = daemon.NewClient();
  int solved = 0;
  for (const RealMatrix& matrix : OneOfEach()) {
    SCOPED_TRACE(matrix.file);
    const auto a = crout::testing::ReadRealMatrix(matrix);
    ASSERT_TRUE(a.ok()) << a.status();
    const auto factor = client->Factor(MatrixSource::MatrixMarketFile(Path(matrix.file)), {}, {});
    ASSERT_THAT(factor, crout::testing::IsOk());
    ASSERT_EQ(factor->n, matrix.n);
    EXPECT_NEAR(factor->norm_one / crout::testing::NormOne(*a, matrix.n), 1, 1e-12);
    if (factor->info > 0) {
      EXPECT_FALSE(matrix.condition > 0 && std::isfinite(matrix.condition)) << "not singular";
      continue;
    }
    const HostMatrix b(static_cast<size_t>(matrix.n), 1.0);
    HostMatrix x(b.size());
    SpanSink sink(absl::MakeSpan(x));
    const auto result = client->Solve(
        factor->handle, MatrixSource::Dense(absl::MakeConstSpan(b), matrix.n, 1), {}, &sink);
    ASSERT_THAT(result, crout::testing::IsOk());
    if (!std::isfinite(*result->backward_error)) continue;  // X overflows: nearly singular
    EXPECT_LT(*result->backward_error, 1e-12);
    EXPECT_NEAR(*result->backward_error,
                crout::testing::BackwardError(*a, matrix.n, Op::kNone, x, b, 1), 1e-16);
    ++solved;
    EXPECT_THAT(client->Release(factor->handle), crout::testing::IsOk());
  }
  std::cout << "real matrices: " << solved << " solved of " << OneOfEach().size() << " chosen\n";
  EXPECT_GE(solved, 5);
}

// The batch has Newton matrices of combustion chemistry for three mechanisms, each with its order.
TEST_F(RealMatricesTest, SeqPeleIsOneBatch) {
  std::vector<int64_t> orders;
  std::vector<HostMatrix> matrices, sides;
  for (const RealMatrix& real : crout::testing::RealMatrixIndex()) {
    if (real.file.rfind("seq_pele/", 0) != 0) continue;
    auto a = crout::testing::ReadRealMatrix(real);
    ASSERT_TRUE(a.ok()) << real.file << ": " << a.status();
    orders.push_back(real.n);
    matrices.push_back(*std::move(a));
    sides.emplace_back(static_cast<size_t>(real.n), 1.0);
  }
  ASSERT_EQ(matrices.size(), 217u);
  BatchSource of_a, of_b;
  for (size_t k = 0; k < matrices.size(); ++k) {
    of_a.Add(matrices[k].data(), orders[k], orders[k]);
    of_b.Add(sides[k].data(), orders[k], 1);
  }
  Daemon daemon;
  const auto batch = Factor::Make(daemon.NewClient(), MatrixSource::Batch(of_a));
  ASSERT_THAT(batch, crout::testing::IsOk());
  ASSERT_TRUE(batch->description().batch.has_value());
  EXPECT_EQ(batch->description().batch->members, 217);
  EXPECT_EQ(batch->description().batch->singular, 0);
  BatchMatrices solutions;
  const auto result = batch->Solve(MatrixSource::BatchRhs(of_b), {}, &solutions);
  ASSERT_THAT(result, crout::testing::IsOk());
  for (size_t k = 0; k < matrices.size(); ++k) {
    SCOPED_TRACE(k);
    EXPECT_EQ(batch->description().members.info[k], 0);
    EXPECT_LT(batch->description().members.quality[k], 30);
    const auto x = solutions.values<double>(static_cast<int64_t>(k));
    const double error = crout::testing::BackwardError(matrices[k], orders[k], Op::kNone,
                                                       HostMatrix(x.begin(), x.end()), sides[k], 1);
    EXPECT_LT(error, 1e-13);
    EXPECT_NEAR(result->systems.backward_error[k], error, 1e-15);
  }
}

TEST_F(RealMatricesTest, MalformedFilesAreRefusedOrReadWithoutHarm) {
  Daemon daemon;
  const auto client = daemon.NewClient();
  int refused = 0;
  for (const auto& file : std::filesystem::directory_iterator(Path("malformed_edge"))) {
    SCOPED_TRACE(file.path());
    const auto factor = client->Factor(MatrixSource::MatrixMarketFile(file.path()), {}, {});
    if (!factor.ok()) {
      ++refused;
      EXPECT_THAT(factor.status().code(), ::testing::AnyOf(absl::StatusCode::kInvalidArgument,
                                                           absl::StatusCode::kUnimplemented,
                                                           absl::StatusCode::kResourceExhausted))
          << factor.status();
      EXPECT_NE(Reason(factor.status()), "");
    }
    ASSERT_TRUE(daemon.process().running()) << daemon.process().Errors();
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace crout::e2e::real_matrices_test
