// SPDX-License-Identifier: Apache-2.0

// Tests KLU over RPC: chosen by name or by `auto`, and with pivots that need more memory than the
// factor has. Also tests methods that the device does not have.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/sparse/sparse_fixture.h"
#include "tests/server/scrape.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::klu_test {
namespace {

constexpr int64_t kM = 20, kN = kM * kM;

// A ladder graph, whose factors are as sparse as the matrix.
Triplets Ladder(int64_t n) {
  Triplets a;
  for (int64_t i = 0; i < n; ++i) {
    a.push_back({i, i, 4 + 0.01 * static_cast<double>(i % 7)});
    if (i + 1 < n) a.push_back({i, i + 1, -1});
    if (i > 1) a.push_back({i, i - 2, -1.5});
  }
  return a;
}

class RpcKluTest : public RpcSparseTest {
 protected:
  RpcKluTest() : RpcSparseTest({v1::ALGORITHM_KLU, v1::ALGORITHM_MULTIFRONTAL}) {}
};

TEST_F(RpcKluTest, FactorsAndSolvesByName) {
  Start();
  const Triplets a = Grid(kM), next = Grid(kM, 1);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  EXPECT_EQ(factor.algorithm(), v1::ALGORITHM_KLU);
  EXPECT_GT(factor.sparse().lu_entries(), std::ssize(a));
  ExpectSolves(factor.handle(), kN, a);
  v1::Factor again;
  ASSERT_TRUE(Refactorize(factor.handle(), kN, next, &again).ok());
  EXPECT_TRUE(again.sparse().analysis_reused());
  ExpectSolves(factor.handle(), kN, next);
  EXPECT_EQ(SampleOf(core().metrics.Scrape(),
                     "crout_factor_duration_seconds_count{algorithm=\"klu\",device=\"cuda:0\","
                     "dtype=\"f64\",size_class=\"1024\"}"),
            2);
}

TEST_F(RpcKluTest, SolvesAfterEvictionToHostMemory) {
  Start();
  const Triplets a = Grid(kM), next = Grid(kM, 1);
  v1::Factor factor = MustFactor(Header(kN, a), a);
  for (const Triplets* const matrix : {&a, &next}) {
    Idle();
    {
      DeviceSlot& slot = *core().engine.devices.slots()[0];
      ASSERT_OK_AND_ASSIGN(const Reservation all,
                           core().engine.cache.ReserveOnDevice(slot, slot.budget->limit()));
      EXPECT_EQ(Held().device_bytes, 0u);
    }
    ExpectSolves(factor.handle(), kN, *matrix);
    // Reuses the pivots of a factor that has been moved to host memory and back.
    if (matrix == &a) {
      ASSERT_TRUE(Refactorize(factor.handle(), kN, next, &factor).ok());
    }
  }
}

TEST_F(RpcKluTest, SupportsOnlyDoublePrecision) {
  Start();
  const Triplets a = Grid(kM);
  v1::FactorizeHeader header = Header(kN, a);
  header.mutable_options()->set_factor_dtype(v1::DTYPE_FLOAT32);
  ExpectRefused(header, BytesOf(a), grpc::StatusCode::UNIMPLEMENTED,
                "'klu' is not available in f32");
  header = Header(kN, a);
  header.mutable_matrix()->mutable_sparse()->set_dtype(v1::DTYPE_FLOAT32);
  std::string bytes = BytesOf(a).substr(0, a.size() * 2 * sizeof(int32_t));
  for (const Triplet& entry : a) Append(static_cast<float>(entry.value), &bytes);
  v1::Factor factor;
  const grpc::Status status = Factorize(header, bytes, &factor);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(factor.matrix_dtype(), v1::DTYPE_FLOAT32);
  EXPECT_EQ(factor.factor_dtype(), v1::DTYPE_FLOAT64);
}

TEST_F(RpcKluTest, AutoChoosesKluForMatricesThatStaySparse) {
  Start();
  constexpr int64_t kOrder = 3000;
  const Triplets a = Ladder(kOrder);
  const v1::Factor factor = MustFactor(Header(kOrder, a, v1::ALGORITHM_AUTO), a);
  EXPECT_EQ(factor.algorithm(), v1::ALGORITHM_KLU);
  ExpectSolves(factor.handle(), kOrder, a);
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Sparse(kOrder, a);
  *header.mutable_rhs() = Dense(kOrder, 1);
  const std::string b = Bytes(std::vector<double>(kOrder, 1.0));
  EXPECT_EQ(FactorizeAndSolve(header, BytesOf(a), b).factor.algorithm(), v1::ALGORITHM_KLU);
  // If a solver is named, only its method can be chosen.
  header.mutable_solve()->set_solver(v1::SOLVER_MULTIFRONTAL);
  const SolvedAtOnce answer = FactorizeAndSolve(header, BytesOf(a), b);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.factor.algorithm(), v1::ALGORITHM_MULTIFRONTAL);
}

TEST_F(RpcKluTest, MatricesThatStaySparseDoSoWithAutomaticPrecision) {
  constexpr int64_t kOrder = 9000;  // for this order, a dense factor would be in single precision
  Start(/*max_n=*/2 * kOrder, /*device_budget=*/size_t{4} << 30);
  const Triplets a = Ladder(kOrder);
  v1::FactorizeHeader header = Header(kOrder, a, v1::ALGORITHM_AUTO);
  header.mutable_options()->set_precision(v1::FACTOR_PRECISION_AUTO);
  const v1::Factor factor = MustFactor(header, a);
  EXPECT_EQ(factor.algorithm(), v1::ALGORITHM_KLU);
  EXPECT_EQ(factor.factor_dtype(), v1::DTYPE_FLOAT64);
  EXPECT_EQ(factor.precision(), v1::FACTOR_PRECISION_UNSPECIFIED);
  ExpectSolves(factor.handle(), kOrder, a);
}

TEST_F(RpcKluTest, AMethodThatTheDeviceLacksIsUnimplemented) {
  absent_ = {{"cudss", "install it"}};
  Start();
  const Triplets a = Grid(kM);
  ExpectRefused(Header(kN, a, v1::ALGORITHM_CUDSS), BytesOf(a), grpc::StatusCode::UNIMPLEMENTED,
                "'cudss' is not available");
  ExpectRefused(Header(kN, a, v1::ALGORITHM_CUDSS), BytesOf(a), grpc::StatusCode::UNIMPLEMENTED,
                "install it");
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  grpc::ClientContext context;
  const auto stream = stub().Solve(&context);
  v1::SolveRequest request;
  request.mutable_header()->set_handle(factor.handle());
  *request.mutable_header()->mutable_rhs() = Dense(kN, 1);
  request.mutable_header()->mutable_options()->set_solver(v1::SOLVER_CUDSS);
  request.set_data(Bytes(std::vector<double>(kN, 1.0)));
  stream->Write(request);
  stream->WritesDone();
  v1::SolveResponse response;
  while (stream->Read(&response)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("install it"));
}

// KLU whose numeric phase always runs out of memory.
class FullKlu final : public SparseLu {
 public:
  explicit FullKlu(std::unique_ptr<SparseLu> klu) : klu_(std::move(klu)) {}

  const MethodTraits& traits() const override { return klu_->traits(); }
  absl::StatusOr<size_t> FactorBytes(const Analysis& analysis, DType dtype) const override {
    return klu_->FactorBytes(analysis, dtype);
  }
  absl::StatusOr<size_t> WorkspaceBytes(const Analysis& analysis, DType dtype,
                                        size_t max_bytes) const override {
    return klu_->WorkspaceBytes(analysis, dtype, max_bytes);
  }
  double PredictSeconds(const Analysis&, DType) const override { return 0; }
  double PredictWithoutAnalysis(int64_t, int64_t, DType) const override { return 0; }
  absl::StatusOr<NumericSummary> Factor(ExecutionContext&, const Analysis&, const AnySparse&, DType,
                                        std::span<std::byte>, std::span<std::byte>, StopRequested,
                                        std::vector<int32_t>*) const override {
    return absl::ResourceExhaustedError("no room");
  }
  absl::StatusOr<LogDeterminant> Determinant(ExecutionContext&, const Analysis&,
                                             const NumericSummary&, std::span<const std::byte>,
                                             DType) const override {
    return absl::InternalError("there is no factor");
  }

 private:
  const std::unique_ptr<SparseLu> klu_;
};

class RpcFullKluTest : public RpcKluTest {
 protected:
  std::unique_ptr<SparseLu> Make(v1::Algorithm method) override {
    std::unique_ptr<SparseLu> made = RpcKluTest::Make(method);
    if (method == v1::ALGORITHM_KLU) made = std::make_unique<FullKlu>(std::move(made));
    return made;
  }
};

TEST_F(RpcFullKluTest, AutoFallsBackToMultifrontal) {
  Start();
  const Triplets a = Grid(kM);
  v1::FactorizeHeader by_auto = Header(kN, a, v1::ALGORITHM_AUTO);
  by_auto.mutable_options()->set_determinant(true);
  const v1::Factor factor = MustFactor(by_auto, a);
  EXPECT_EQ(factor.algorithm(), v1::ALGORITHM_MULTIFRONTAL);
  EXPECT_TRUE(factor.has_determinant());
  EXPECT_EQ(Idle().device_reserved, static_cast<size_t>(factor.bytes()));

  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Sparse(kN, a);
  *header.mutable_rhs() = Dense(kN, 1);
  const std::vector<double> b(kN, 1.0);
  const SolvedAtOnce answer = FactorizeAndSolve(header, BytesOf(a), Bytes(b));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.result.solver(), v1::SOLVER_MULTIFRONTAL);
  std::vector<double> x(kN);
  ASSERT_EQ(answer.data.size(), kN * sizeof(double));
  std::memcpy(x.data(), answer.data.data(), answer.data.size());
  EXPECT_LT(BackwardError(a, false, x, b), 1e-14);
}

TEST_F(RpcFullKluTest, TheCallFailsIfKluIsNamed) {
  Start();
  const Triplets a = Grid(kM);
  ExpectRefused(Header(kN, a), BytesOf(a), grpc::StatusCode::RESOURCE_EXHAUSTED, "no room");
}

}  // namespace
}  // namespace crout::testing::klu_test
