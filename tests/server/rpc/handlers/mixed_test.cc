// SPDX-License-Identifier: Apache-2.0

// Tests low-precision factors over RPC: the request, the reply, and solves that reach the accuracy
// of float64.
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"

namespace crout::testing::mixed_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kN = 150;
const double kAccuracy = std::sqrt(static_cast<double>(kN)) * 0x1p-53;

// A matrix that is too ill-conditioned for corrections with its float32 factor.
HostMatrix BeyondFloat32() { return WithCondition(kN, 1e14, 3); }

class RpcMixedTest : public RpcTest {
 protected:
  struct Answer {
    grpc::Status status;
    v1::Factor factor;
    v1::SolveResult result;
    std::vector<double> x;
  };

  static v1::FactorizeHeader Header(v1::FactorPrecision precision) {
    v1::FactorizeHeader header;
    *header.mutable_matrix() = Dense(kN, kN);
    header.mutable_options()->set_precision(precision);
    return header;
  }

  Answer FactorizeAndSolve(const HostMatrix& a, const HostMatrix& b, bool cache) {
    grpc::ClientContext context;
    auto stream = stub().FactorizeAndSolve(&context);
    v1::FactorizeAndSolveRequest request;
    v1::FactorizeAndSolveHeader& header = *request.mutable_header();
    *header.mutable_matrix() = Dense(kN, kN);
    *header.mutable_rhs() = Dense(kN, 1);
    header.mutable_options()->set_precision(v1::FACTOR_PRECISION_SINGLE);
    if (cache) header.mutable_cache();
    stream->Write(request);
    v1::FactorizeAndSolveRequest matrix;
    matrix.set_data(Bytes(a));
    stream->Write(matrix);
    v1::FactorizeAndSolveRequest rhs;
    rhs.set_rhs_data(Bytes(b));
    stream->Write(rhs);
    stream->WritesDone();
    Answer answer;
    std::string data;
    v1::FactorizeAndSolveResponse response;
    while (stream->Read(&response)) {
      data += response.data();
      if (response.has_factor()) answer.factor = response.factor();
      if (response.has_result()) answer.result = response.result();
    }
    answer.status = stream->Finish();
    answer.x.resize(data.size() / sizeof(double));
    std::memcpy(answer.x.data(), data.data(), data.size());
    return answer;
  }
};

TEST_F(RpcMixedTest, TheEstimateIsForThePrecisionThatWouldBeChosen) {
  StartServer();
  const auto estimate = [&](v1::FactorPrecision precision, v1::EstimateFactorizeResponse* response,
                            v1::Dtype dtype = v1::DTYPE_FLOAT64) {
    v1::EstimateFactorizeRequest request;
    request.set_n(kN);
    request.set_matrix_dtype(dtype);
    request.mutable_options()->set_precision(precision);
    grpc::ClientContext context;
    return stub().EstimateFactorize(&context, request, response);
  };
  v1::EstimateFactorizeResponse wide, low;
  ASSERT_TRUE(estimate(v1::FACTOR_PRECISION_UNSPECIFIED, &wide).ok());
  EXPECT_EQ(wide.precision(), v1::FACTOR_PRECISION_UNSPECIFIED);
  ASSERT_TRUE(estimate(v1::FACTOR_PRECISION_SINGLE, &low).ok());
  EXPECT_EQ(low.precision(), v1::FACTOR_PRECISION_SINGLE);
  EXPECT_LT(low.cached_bytes(), wide.cached_bytes());
  v1::FactorizeHeader header = Header(v1::FACTOR_PRECISION_SINGLE);
  header.mutable_options()->set_equilibrate(v1::EQUILIBRATE_OFF);
  v1::Factor factor;
  ASSERT_TRUE(Factorize(header, Bytes(RandomMatrix(kN, kN, 3)), &factor).ok());
  EXPECT_EQ(factor.precision(), v1::FACTOR_PRECISION_SINGLE);
  EXPECT_EQ(low.algorithm(), factor.algorithm());
  EXPECT_GE(low.cached_bytes(), factor.bytes());
  // A low-precision factor is not faster below n = 8192.
  v1::EstimateFactorizeResponse chosen;
  ASSERT_TRUE(estimate(v1::FACTOR_PRECISION_AUTO, &chosen).ok());
  EXPECT_EQ(chosen.precision(), v1::FACTOR_PRECISION_UNSPECIFIED);
  EXPECT_EQ(chosen.cached_bytes(), wide.cached_bytes());
  for (const auto& [precision, dtype] :
       {std::pair(v1::FACTOR_PRECISION_SINGLE, v1::DTYPE_FLOAT32),
        std::pair(static_cast<v1::FactorPrecision>(77), v1::DTYPE_FLOAT64)}) {
    const grpc::Status status = estimate(precision, &low, dtype);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("precision"));
  }
}

TEST_F(RpcMixedTest, StoresHalfTheBytesAndSolvesToFloat64Accuracy) {
  StartServer();
  const HostMatrix a = WithCondition(kN, 1e5, 3);
  const HostMatrix b = RandomMatrix(kN, 1, 5);
  v1::Factor wide;
  v1::Factor factor;
  ASSERT_TRUE(Factorize(Header(v1::FACTOR_PRECISION_UNSPECIFIED), Bytes(a), &wide).ok());
  ASSERT_TRUE(Factorize(Header(v1::FACTOR_PRECISION_SINGLE), Bytes(a), &factor).ok());
  EXPECT_EQ(wide.precision(), v1::FACTOR_PRECISION_UNSPECIFIED);
  EXPECT_EQ(factor.precision(), v1::FACTOR_PRECISION_SINGLE);
  EXPECT_EQ(factor.precision_fallback(), v1::PRECISION_FALLBACK_UNSPECIFIED);
  EXPECT_EQ(factor.factor_dtype(), v1::DTYPE_FLOAT32);
  EXPECT_LT(factor.bytes(), wide.bytes() - kN * kN * 3);
  Solved solved;
  ASSERT_TRUE(Solve(factor.handle(), b, &solved).ok());
  EXPECT_LE(solved.result.backward_error(), kAccuracy);
  EXPECT_LE(BackwardError(a, kN, Op::kNone, solved.x, b, 1), 2 * kAccuracy);
  EXPECT_GE(solved.result.corrections(), 1);
  EXPECT_THAT(solved.result.warnings(), IsEmpty());
}

TEST_F(RpcMixedTest, FactorizeAndSolveFallsBackToFloat64) {
  StartServer();
  const HostMatrix a = BeyondFloat32();
  const HostMatrix b = RandomMatrix(kN, 1, 5);
  const Holdings before = Idle();
  for (const bool cache : {false, true}) {
    const Answer answer = FactorizeAndSolve(a, b, cache);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_EQ(answer.factor.factor_dtype(), v1::DTYPE_FLOAT64);
    EXPECT_EQ(answer.factor.precision(), v1::FACTOR_PRECISION_UNSPECIFIED);
    EXPECT_EQ(answer.factor.precision_fallback(), v1::PRECISION_FALLBACK_STAGNATION);
    EXPECT_LE(BackwardError(a, kN, Op::kNone, answer.x, b, 1), 2 * kAccuracy);
    EXPECT_THAT(answer.result.warnings(), IsEmpty());
    if (!cache) {
      ExpectHeldSoon(before);
    } else {
      EXPECT_EQ(Idle().device_reserved, static_cast<size_t>(answer.factor.bytes()));
    }
  }
}

TEST_F(RpcMixedTest, FactorizeAndSolveStaysInSinglePrecisionIfAccurate) {
  StartServer();
  const HostMatrix a = WithCondition(kN, 1e3, 3);
  const HostMatrix b = RandomMatrix(kN, 1, 5);
  const Answer answer = FactorizeAndSolve(a, b, /*cache=*/true);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.factor.factor_dtype(), v1::DTYPE_FLOAT32);
  EXPECT_LE(BackwardError(a, kN, Op::kNone, answer.x, b, 1), 2 * kAccuracy);
  EXPECT_EQ(Idle().device_reserved, static_cast<size_t>(answer.factor.bytes()));
}

TEST_F(RpcMixedTest, AnInaccurateSolveByHandleIsReportedAndKeepsTheFactor) {
  StartServer();
  const HostMatrix a = BeyondFloat32();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(Header(v1::FACTOR_PRECISION_SINGLE), Bytes(a), &factor).ok());
  ASSERT_EQ(factor.factor_dtype(), v1::DTYPE_FLOAT32);
  Solved solved;
  ASSERT_TRUE(Solve(factor.handle(), RandomMatrix(kN, 1, 5), &solved).ok());
  EXPECT_GT(solved.result.backward_error(), kAccuracy);
  EXPECT_THAT(solved.result.warnings(), ElementsAre(v1::WARNING_NOT_ACCURATE));
  EXPECT_EQ(solved.result.factor_version(), 1);
}

TEST_F(RpcMixedTest, AutoChoosesFloat64IfLowerPrecisionIsNotFaster) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(
      Factorize(Header(v1::FACTOR_PRECISION_AUTO), Bytes(WithCondition(kN, 10, 3)), &factor).ok());
  EXPECT_EQ(factor.factor_dtype(), v1::DTYPE_FLOAT64);
  EXPECT_EQ(factor.precision(), v1::FACTOR_PRECISION_UNSPECIFIED);
  EXPECT_EQ(factor.precision_fallback(), v1::PRECISION_FALLBACK_UNSPECIFIED);
}

TEST_F(RpcMixedTest, RefusesContradictoryOptions) {
  StartServer();
  const std::string data = Bytes(WithCondition(kN, 10, 3));
  const std::pair<const char*, std::function<void(v1::FactorizeHeader*)>> cases[] = {
      {"leave keep_matrix out", [](auto* h) { h->mutable_options()->set_keep_matrix(false); }},
      {"leave factor_dtype out",
       [](auto* h) { h->mutable_options()->set_factor_dtype(v1::DTYPE_FLOAT64); }},
      {"in single precision itself",
       [](auto* h) { h->mutable_matrix()->mutable_dense()->set_dtype(v1::DTYPE_FLOAT32); }},
      {"does not offer them: choose the precision single",
       [](auto* h) { h->mutable_options()->set_precision(v1::FACTOR_PRECISION_TF32); }},
      {"unknown value 77: use one of FACTOR_PRECISION_",
       [](auto* h) { h->mutable_options()->set_precision(static_cast<v1::FactorPrecision>(77)); }},
  };
  for (const auto& [message, spoil] : cases) {
    v1::FactorizeHeader header = Header(v1::FACTOR_PRECISION_SINGLE);
    spoil(&header);
    v1::Factor factor;
    const grpc::Status status = Factorize(header, data, &factor);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << message;
    EXPECT_THAT(status.error_message(), HasSubstr("header.options.precision"));
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace crout::testing::mixed_test
