// A server that has enough: full queues, full memory, idle uploads, text that outgrows the budget.
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/server/rpc_fixture.h"

namespace crout::testing {
namespace {

using ::testing::HasSubstr;

class RpcLoadTest : public RpcTest {
 protected:
  // The retry delay that a refusal carries, in seconds; -1 without one.
  static double RetryDelay(const grpc::Status& status) {
    google::rpc::Status details;
    EXPECT_TRUE(details.ParseFromString(status.error_details()));
    for (const auto& any : details.details()) {
      google::rpc::RetryInfo retry;
      if (any.UnpackTo(&retry)) {
        return static_cast<double>(retry.retry_delay().seconds()) +
               retry.retry_delay().nanos() * 1e-9;
      }
    }
    return -1;
  }
};

TEST_F(RpcLoadTest, AFullQueueRefusesWithARetryDelay) {
  StartServer();  // one stream, two places
  device().factor_gate().Close();
  std::vector<std::thread> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back([this] {
      v1::Factor factor;
      EXPECT_TRUE(Factorize(30, &factor).ok());
    });
    if (i == 0) device().factor_gate().WaitUntilHeld();
  }
  WaitUntil([this] { return Held().queue_depth == 2; }, "queue full");
  v1::Factor factor;
  const grpc::Status status = Factorize(30, &factor);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_details(), HasSubstr("QUEUE_FULL"));
  EXPECT_GT(RetryDelay(status), 0);
  device().factor_gate().Open();
  for (std::thread& thread : waiting) thread.join();
  // Counted when gRPC is done with the call, which the client may see earlier.
  WaitUntil(
      [this] {
        return core().metrics.Scrape().find("crout_rejected_total{reason=\"queue_full\"} 1") !=
               std::string::npos;
      },
      "rejection counted");
}

TEST_F(RpcLoadTest, WhatDoesNotFitIsRefusedBeforeItsPayload) {
  StartServer();
  grpc::ClientContext context;
  auto stream = stub().Factorize(&context);
  v1::FactorizeRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(4000, 4000);  // 128 MB against 48 MiB
  stream->Write(request);
  v1::FactorizeResponse response;
  while (stream->Read(&response)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_details(), HasSubstr("MEMORY_EXHAUSTED"));
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcLoadTest, UploadsDoNotWaitForEachOthersMemory) {
  Config config = SmallConfig();
  config.pool.device_budget_bytes = size_t{4} << 20;  // one job of n = 400, not two
  StartServer({}, config);
  grpc::ClientContext context;
  auto half = stub().Factorize(&context);
  v1::FactorizeRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(400, 400);
  half->Write(request);
  WaitUntil([this] { return Held().uploads == 1; }, "first upload open");
  v1::Factor factor;
  const grpc::Status refused = Factorize(400, &factor);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_GT(RetryDelay(refused), 0);
  // The first still completes.
  v1::FactorizeRequest rest;
  rest.set_data(Bytes(Matrix(400)));
  half->Write(rest);
  half->WritesDone();
  v1::FactorizeResponse response;
  while (half->Read(&response)) {
  }
  EXPECT_TRUE(half->Finish().ok());
}

TEST_F(RpcLoadTest, AnIdleUploadIsEndedAndGivesEverythingBack) {
  Config config = SmallConfig();
  config.limits.upload_idle_timeout = absl::Milliseconds(50);
  StartServer({}, config);
  grpc::ClientContext context;
  auto stream = stub().Factorize(&context);
  v1::FactorizeRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(100, 100);
  stream->Write(request);
  WaitUntil([this] { return Held().uploads == 1; }, "upload open");
  WaitUntil(
      [this] {
        stack().Housekeep();
        return Held().uploads == 0;
      },
      "ended");
  v1::FactorizeResponse response;
  while (stream->Read(&response)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_details(), HasSubstr("UPLOAD_IDLE"));
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcLoadTest, TextIsChargedToTheHostBudgetWhileItArrives) {
  Config config = SmallConfig();
  config.pool.host_budget_bytes = size_t{8} << 20;
  StartServer({}, config);
  grpc::ClientContext context;
  auto stream = stub().Factorize(&context);
  v1::FactorizeRequest request;
  request.mutable_header()->mutable_matrix()->mutable_matrix_market();
  request.set_data("%%MatrixMarket matrix coordinate real general\n4000 4000 100000000\n");
  stream->Write(request);
  v1::FactorizeRequest chunk;
  std::string lines;
  while (lines.size() < (size_t{1} << 20)) lines += "1 1 1\n";
  chunk.set_data(lines);
  int sent = 0;
  while (sent < 64 && stream->Write(chunk)) ++sent;
  stream->WritesDone();
  v1::FactorizeResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcLoadTest, StagingThatIsFullDelaysTheUploadAndLosesNothing) {
  StartServer();
  device().HoldUploads();
  v1::Factor factor;
  std::thread uploading([&] { EXPECT_TRUE(Factorize(300, &factor, 5).ok()); });
  WaitUntil([this] { return Held().uploads == 1; }, "upload open");
  device().ReleaseUploads();
  uploading.join();
  Solved solved;
  ASSERT_TRUE(Solve(factor.handle(), std::vector<double>(300, 1.0), &solved).ok());
  EXPECT_LT(solved.result.backward_error(), 1e-14);
}

}  // namespace
}  // namespace crout::testing
