// SPDX-License-Identifier: Apache-2.0

// Tests over RPC that a device can register methods in one line, without other code in the server.
// The methods use names of the contract that the fake device does not implement.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"
#include "tests/support/fakes/plain_direct_solver.h"
#include "tests/support/fakes/toy_lu.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::catalogue_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

constexpr int64_t kN = 20;

void RegisterTestMethods(Catalogue& catalogue) {
  catalogue.algorithms.push_back(std::make_unique<ToyLu>("irr_lu"));
  catalogue.direct_solvers.push_back(std::make_unique<PlainDirectSolver>(
      MethodTraits{.name = "multifrontal", .description = "a toy", .types = {DType::kFloat64}}));
}

class RpcCatalogueTest : public RpcTest {
 protected:
  static v1::FactorizeHeader Header(v1::Algorithm algorithm) {
    v1::FactorizeHeader header;
    *header.mutable_matrix() = Dense(kN, kN);
    header.mutable_options()->set_algorithm(algorithm);
    return header;
  }

  grpc::Status Factorize(const v1::FactorizeHeader& header, v1::Factor* factor) {
    return RpcTest::Factorize(header, Bytes(Matrix(kN)), factor);
  }

  void ExpectRefused(const v1::FactorizeHeader& header, grpc::StatusCode code,
                     const std::string& text) {
    v1::Factor factor;
    const grpc::Status status = Factorize(header, &factor);
    EXPECT_EQ(status.error_code(), code);
    EXPECT_THAT(status.error_message(), HasSubstr(text));
  }

  std::vector<int> ListedAlgorithms() {
    grpc::ClientContext context;
    v1::GetServerInfoResponse info;
    EXPECT_TRUE(stub().GetServerInfo(&context, {}, &info).ok());
    return {info.devices(0).algorithms().begin(), info.devices(0).algorithms().end()};
  }

  double Sample(const std::string& series) {
    return SampleOf(core().metrics.Scrape(), series).value_or(-1);
  }
};

TEST_F(RpcCatalogueTest, ARegisteredMethodIsServedByName) {
  StartServer({.register_more = RegisterTestMethods});
  v1::Factor factor;
  const grpc::Status status = Factorize(Header(v1::ALGORITHM_IRR_LU), &factor);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(factor.algorithm(), v1::ALGORITHM_IRR_LU);
  EXPECT_EQ(factor.info(), 0);
  EXPECT_LT(factor.quality(), 30);
  EXPECT_EQ(factor.iterations().total_sweeps(), 1);

  const std::vector<double> a = Matrix(kN);
  std::vector<double> b(kN, 0);  // A times the vector of ones
  for (int64_t i = 0; i < kN * kN; ++i) b[i % kN] += a[i];
  Solved solved;
  ASSERT_TRUE(Solve(factor.handle(), b, &solved).ok());
  EXPECT_LT(solved.result.backward_error(), 1e-14);
  ASSERT_EQ(solved.x.size(), b.size());
  for (const double x : solved.x) EXPECT_NEAR(x, 1, 1e-12);
}

TEST_F(RpcCatalogueTest, ARegisteredMethodIsListedEstimatedAndCounted) {
  StartServer({.register_more = RegisterTestMethods});
  EXPECT_THAT(ListedAlgorithms(), Contains(v1::ALGORITHM_IRR_LU));
  EXPECT_THAT(ListedAlgorithms(), Contains(v1::ALGORITHM_MULTIFRONTAL));
  EXPECT_EQ(Sample("crout_iterations_total{algorithm=\"irr_lu\",start=\"cold\"}"), 0);
  EXPECT_EQ(Sample("crout_poor_results_total{algorithm=\"irr_lu\",result=\"factor\"}"), 0);

  grpc::ClientContext context;
  v1::EstimateFactorizeRequest request;
  request.set_n(kN);
  request.mutable_options()->set_algorithm(v1::ALGORITHM_IRR_LU);
  v1::EstimateFactorizeResponse estimate;
  ASSERT_TRUE(stub().EstimateFactorize(&context, request, &estimate).ok());
  EXPECT_EQ(estimate.algorithm(), v1::ALGORITHM_IRR_LU);

  v1::Factor factor;
  ASSERT_TRUE(Factorize(Header(v1::ALGORITHM_IRR_LU), &factor).ok());
  EXPECT_EQ(Sample("crout_factor_duration_seconds_count{algorithm=\"irr_lu\",device=\"cuda:0\","
                   "dtype=\"f64\",size_class=\"64\"}"),
            1);
  EXPECT_EQ(Sample("crout_iterations_total{algorithm=\"irr_lu\",start=\"cold\"}"), 1);
  EXPECT_EQ(Sample("crout_sections_total{algorithm=\"irr_lu\",start=\"cold\"}"), 1);
}

TEST_F(RpcCatalogueTest, UnsupportedParametersAreRefused) {
  StartServer({.register_more = RegisterTestMethods});
  v1::FactorizeHeader header = Header(v1::ALGORITHM_IRR_LU);
  header.mutable_options()->mutable_parameters()->set_block_size(8);
  ExpectRefused(header, grpc::StatusCode::INVALID_ARGUMENT, "'irr_lu' takes no block size");
  header.mutable_options()->mutable_parameters()->clear_block_size();
  header.mutable_options()->mutable_parameters()->set_variant(v1::METHOD_VARIANT_PUBLISHED);
  ExpectRefused(header, grpc::StatusCode::UNIMPLEMENTED, "has no variant 'published'");
  header.mutable_options()->mutable_parameters()->clear_variant();
  header.mutable_options()->mutable_parameters()->set_absolute_tolerance(1);
  ExpectRefused(header, grpc::StatusCode::INVALID_ARGUMENT, "takes no absolute tolerance");
  header = Header(v1::ALGORITHM_IRR_LU);
  header.mutable_options()->set_factor_dtype(v1::DTYPE_FLOAT32);
  ExpectRefused(header, grpc::StatusCode::UNIMPLEMENTED, "'irr_lu' is not available in f32");
  ExpectHeldSoon(Holdings());

  // `auto` chooses the method for the type that it supports, because it predicts the least time.
  for (const v1::Dtype dtype : {v1::DTYPE_FLOAT64, v1::DTYPE_FLOAT32}) {
    header = Header(v1::ALGORITHM_AUTO);
    header.mutable_options()->set_factor_dtype(dtype);
    v1::Factor factor;
    ASSERT_TRUE(Factorize(header, &factor).ok());
    EXPECT_EQ(factor.algorithm() == v1::ALGORITHM_IRR_LU, dtype == v1::DTYPE_FLOAT64);
  }
}

TEST_F(RpcCatalogueTest, AMethodWithoutFactorsIsRecognizedByItsKind) {
  StartServer({.register_more = RegisterTestMethods});
  ExpectRefused(Header(v1::ALGORITHM_MULTIFRONTAL), grpc::StatusCode::FAILED_PRECONDITION,
                "multifrontal solves and leaves no factors: use FactorizeAndSolve");
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Dense(2, 2);
  *header.mutable_rhs() = Dense(2, 1);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_MULTIFRONTAL);
  SolvedAtOnce answer = FactorizeAndSolve(header, Bytes({0, 2, 4, 1}), Bytes({8, 4}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.data, Bytes({1, 2}));
  EXPECT_EQ(answer.factor.algorithm(), v1::ALGORITHM_MULTIFRONTAL);
  EXPECT_EQ(answer.factor.handle(), "");
  EXPECT_EQ(Sample("crout_factor_duration_seconds_count{algorithm=\"multifrontal\","
                   "device=\"cuda:0\",dtype=\"f64\",size_class=\"64\"}"),
            1);
  header.mutable_options()->set_determinant(true);
  answer = FactorizeAndSolve(header, Bytes({0, 2, 4, 1}), Bytes({8, 4}));
  EXPECT_THAT(answer.status.error_message(), HasSubstr("multifrontal produces none"));
  header.mutable_options()->set_determinant(false);
  header.mutable_options()->set_factor_dtype(v1::DTYPE_FLOAT32);
  answer = FactorizeAndSolve(header, Bytes({0, 2, 4, 1}), Bytes({8, 4}));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(RpcCatalogueTest, WithoutRegistrationThereIsNoSuchMethod) {
  StartServer();
  EXPECT_THAT(ListedAlgorithms(), Not(Contains(v1::ALGORITHM_IRR_LU)));
  for (const v1::Algorithm algorithm : {v1::ALGORITHM_IRR_LU, v1::ALGORITHM_MULTIFRONTAL}) {
    ExpectRefused(Header(algorithm), grpc::StatusCode::UNIMPLEMENTED,
                  "is not available on device cuda:0; available: getrf");
  }
}

TEST_F(RpcCatalogueTest, AMethodWithoutAProtoValueFailsTheStart) {
  for (const char* name : {"toy", "auto", "trsm"}) {
    std::vector<std::shared_ptr<Device>> devices;
    devices.push_back(
        std::make_unique<FakeDevice>(FakeDeviceOptions{.register_more = [&](Catalogue& catalogue) {
          catalogue.algorithms.push_back(std::make_unique<ToyLu>(name));
        }}));
    EXPECT_THAT(ServerComponents::Create(std::move(devices), SmallConfig()),
                FailsWith(absl::StatusCode::kInternal, std::string("the method '") + name + "'"));
  }
}

}  // namespace
}  // namespace crout::testing::catalogue_test
