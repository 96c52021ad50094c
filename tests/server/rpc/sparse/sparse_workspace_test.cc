// SPDX-License-Identifier: Apache-2.0

// Tests how often a sparse method is queried for its workspace, and with which limit.
#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/util/status_macros.h"
#include "tests/server/rpc/series/sparse_stream_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::sparse_workspace_test {
namespace {

constexpr int64_t kM = 20, kN = kM * kM;

// The multifrontal method of the host. Counts workspace queries, and requests `beyond` additional
// bytes if the limit allows it.
class CountingFronts final : public SparseLu {
 public:
  CountingFronts(std::unique_ptr<SparseLu> fronts, size_t beyond, std::atomic<int>& queries)
      : fronts_(std::move(fronts)), beyond_(beyond), queries_(queries) {}

  const MethodTraits& traits() const override { return fronts_->traits(); }
  bool ProvidesFronts() const override { return true; }
  bool SupportsComplements() const override { return true; }
  absl::StatusOr<size_t> FactorBytes(const Analysis& analysis, DType dtype) const override {
    return fronts_->FactorBytes(analysis, dtype);
  }
  absl::StatusOr<size_t> WorkspaceBytes(const Analysis& analysis, DType dtype,
                                        size_t max_bytes) const override {
    ++queries_;
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, fronts_->WorkspaceBytes(analysis, dtype, max_bytes));
    return bytes + beyond_ <= max_bytes ? bytes + beyond_ : bytes;
  }
  double PredictSeconds(const Analysis& analysis, DType dtype) const override {
    return fronts_->PredictSeconds(analysis, dtype);
  }
  double PredictWithoutAnalysis(int64_t n, int64_t nonzeros, DType dtype) const override {
    return fronts_->PredictWithoutAnalysis(n, nonzeros, dtype);
  }
  absl::StatusOr<NumericSummary> Factor(ExecutionContext& context, const Analysis& analysis,
                                        const AnySparse& a, DType dtype,
                                        std::span<std::byte> factor, std::span<std::byte> workspace,
                                        StopRequested stop,
                                        std::vector<int32_t>* postponable) const override {
    return fronts_->Factor(context, analysis, a, dtype, factor, workspace, std::move(stop),
                           postponable);
  }
  absl::StatusOr<LogDeterminant> Determinant(ExecutionContext& context, const Analysis& analysis,
                                             const NumericSummary& summary,
                                             std::span<const std::byte> factor,
                                             DType dtype) const override {
    return fronts_->Determinant(context, analysis, summary, factor, dtype);
  }

 private:
  const std::unique_ptr<SparseLu> fronts_;
  const size_t beyond_;
  std::atomic<int>& queries_;
};

class RpcSparseWorkspaceTest : public RpcSparseStreamTest {
 protected:
  RpcSparseWorkspaceTest() : RpcSparseStreamTest(v1::ALGORITHM_MULTIFRONTAL) { b_.assign(kN, 1.0); }

  std::unique_ptr<SparseLu> Make(v1::Algorithm method) override {
    return std::make_unique<CountingFronts>(RpcSparseStreamTest::Make(method), beyond_, queries_);
  }

  size_t beyond_ = 0;
  std::atomic<int> queries_ = 0;
};

TEST_F(RpcSparseWorkspaceTest, ValuesAloneNeedNoWorkspaceRequest) {
  Start();
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  EXPECT_EQ(queries_, 1);
  v1::RefactorizeHeader header;
  header.set_handle(factor.handle());
  header.mutable_matrix()->mutable_values()->set_entries(factor.nnz());
  header.mutable_matrix()->mutable_values()->set_pattern_digest(factor.sparse().pattern_digest());
  v1::Factor again;
  for (int step = 1; step < 3; ++step) {
    Triplets next = Grid(kM, step);
    std::ranges::sort(next, {}, [](const Triplet& t) { return std::pair(t.column, t.row); });
    std::vector<double> values;
    for (const Triplet& entry : next) values.push_back(entry.value);
    const grpc::Status status = Refactorize(header, Bytes(values), &again);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ExpectSolves(factor.handle(), kN, next);
  }
  v1::EstimateFactorizeRequest request;
  request.set_handle(factor.handle());
  v1::EstimateFactorizeResponse estimate;
  grpc::ClientContext context;
  ASSERT_TRUE(stub().EstimateFactorize(&context, request, &estimate).ok());
  EXPECT_EQ(queries_, 1);

  Open(v1::SERIES_STRATEGY_REFACTOR);
  StreamAnswer answer;
  ASSERT_TRUE(Step(a, false, &answer)) << Finish().error_message();
  EXPECT_EQ(queries_, 2);
  for (int step = 1; step < 4; ++step) {
    ASSERT_TRUE(Step(Grid(kM, step), true, &answer)) << Finish().error_message();
    ExpectSolved(answer, Grid(kM, step));
    EXPECT_TRUE(answer.factor);
  }
  EXPECT_TRUE(Finish().ok());
  EXPECT_EQ(queries_, 2);
}

TEST_F(RpcSparseWorkspaceTest, AWorkspaceBeyondTheDeviceIsOmitted) {
  constexpr size_t kBudget = size_t{32} << 20;
  beyond_ = 2 * kBudget;
  Start(/*max_n=*/4096, kBudget);
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  EXPECT_EQ(queries_, 2);
  ExpectSolves(factor.handle(), kN, a);
  v1::EstimateFactorizeRequest request;
  request.set_handle(factor.handle());
  v1::EstimateFactorizeResponse estimate;
  grpc::ClientContext context;
  ASSERT_TRUE(stub().EstimateFactorize(&context, request, &estimate).ok());
  EXPECT_LT(estimate.peak_bytes(), static_cast<int64_t>(kBudget));
  EXPECT_EQ(queries_, 2);
}

}  // namespace
}  // namespace crout::testing::sparse_workspace_test
