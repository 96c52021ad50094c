// SPDX-License-Identifier: Apache-2.0

// Tests a server at its limits: a full queue, full memory, idle uploads, and a text whose matrix
// exceeds the budget.
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::load_test {
namespace {

using ::testing::HasSubstr;

class RpcLoadTest : public RpcTest {
 protected:
  // Returns the bytes received so far, including headers.
  double Received() {
    return SampleOf(core().metrics.Scrape(), "crout_received_bytes_total").value_or(0);
  }

  // A Factorize call whose payload is incomplete.
  class OpenUpload {
   public:
    OpenUpload(RpcLoadTest& test, const v1::MatrixSpec& matrix)
        : test_(test), stream_(test.stub().Factorize(&context_)) {
      v1::FactorizeRequest request;
      *request.mutable_header()->mutable_matrix() = matrix;
      stream_->Write(request);
      test_.WaitUntil([this] { return test_.Held().uploads == 1; }, "upload open");
    }

    // Sends a message and waits until the server has received it.
    void Send(const v1::FactorizeRequest& request) {
      const double before = test_.Received();
      stream_->Write(request);
      test_.WaitUntil([&] { return test_.Received() > before; }, "message received");
    }

    // Returns the status with which the server ends the call.
    grpc::Status Await() {
      v1::FactorizeResponse response;
      while (stream_->Read(&response)) {
      }
      return stream_->Finish();
    }

   private:
    RpcLoadTest& test_;
    grpc::ClientContext context_;
    const std::unique_ptr<grpc::ClientReaderWriter<v1::FactorizeRequest, v1::FactorizeResponse>>
        stream_;
  };

  // Returns the retry delay of an error in seconds, or -1 if it has none.
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
  StartServer();  // one stream, two places in the queue
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
  // The client may see the refusal before it is counted, which happens when gRPC finishes the call.
  WaitUntil(
      [this] {
        return core().metrics.Scrape().find("crout_rejected_total{reason=\"queue_full\"} 1") !=
               std::string::npos;
      },
      "rejection counted");
}

TEST_F(RpcLoadTest, AMatrixThatDoesNotFitIsRefusedBeforeItsPayload) {
  StartServer();
  grpc::ClientContext context;
  auto stream = stub().Factorize(&context);
  v1::FactorizeRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(4000, 4000);  // 128 MB; the budget is 48 MiB
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
  config.pool.device_budget_bytes = size_t{4} << 20;  // fits one job of n = 400
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
  // The first call still completes.
  v1::FactorizeRequest rest;
  rest.set_data(Bytes(Matrix(400)));
  half->Write(rest);
  half->WritesDone();
  v1::FactorizeResponse response;
  while (half->Read(&response)) {
  }
  EXPECT_TRUE(half->Finish().ok());
}

TEST_F(RpcLoadTest, AnIdleUploadIsEndedAndReleasesEverything) {
  StartServer();
  OpenUpload upload(*this, Dense(100, 100));
  PassTime(absl::Seconds(15));
  EXPECT_EQ(Held().uploads, 1);
  PassTime(absl::Seconds(16));
  const grpc::Status status = upload.Await();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_details(), HasSubstr("UPLOAD_IDLE"));
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcLoadTest, MessagesWithoutPayloadDoNotKeepAnUploadAlive) {
  StartServer();
  OpenUpload upload(*this, Dense(100, 100));
  v1::FactorizeRequest nothing;  // contains only a field unknown to the server
  nothing.GetReflection()->MutableUnknownFields(&nothing)->AddVarint(1000, 1);
  for (int i = 0; i < 3; ++i) {
    PassTime(absl::Seconds(6));
    upload.Send(nothing);
  }
  EXPECT_EQ(Held().uploads, 1);
  PassTime(absl::Seconds(13));
  EXPECT_THAT(upload.Await().error_details(), HasSubstr("UPLOAD_IDLE"));
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcLoadTest, AnUploadThatIsTooSlowIsEnded) {
  Config config = SmallConfig();
  config.limits.transfer.idle_timeout = absl::Minutes(30);
  config.limits.transfer.min_rate = 2;
  StartServer({}, config);
  OpenUpload upload(*this, Dense(100, 100));
  v1::FactorizeRequest some;
  some.set_data(std::string(800, 0));
  upload.Send(some);
  PassTime(absl::Minutes(20));
  upload.Send(some);
  PassTime(absl::Minutes(20));  // 1600 bytes in 40 minutes; the minimum rate applies after 30
  EXPECT_EQ(Held().uploads, 1);
  PassTime(absl::Minutes(5));
  const grpc::Status status = upload.Await();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_details(), HasSubstr("UPLOAD_SLOW"));
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcLoadTest, AnOpenSolvePinsAReleasedFactorUntilTheUploadLimit) {
  Config config = SmallConfig();
  config.limits.transfer.idle_timeout = absl::Minutes(30);
  config.limits.transfer.min_rate = 0;
  config.limits.transfer.max_time = absl::Hours(1);
  StartServer({}, config);
  v1::Factor factor;
  ASSERT_TRUE(Factorize(50, &factor).ok());
  grpc::ClientContext context;
  auto stream = stub().Solve(&context);
  v1::SolveRequest request;
  request.mutable_header()->set_handle(factor.handle());
  *request.mutable_header()->mutable_rhs() = Dense(50, 1);
  stream->Write(request);
  WaitUntil([this] { return Held().uploads == 1; }, "upload open");
  v1::ReleaseFactorRequest release;
  release.set_handle(factor.handle());
  grpc::ClientContext releasing;
  v1::ReleaseFactorResponse released;
  ASSERT_TRUE(stub().ReleaseFactor(&releasing, release, &released).ok());
  v1::SolveRequest element;
  element.set_data(std::string(8, 0));
  for (int i = 0; i < 2; ++i) {
    PassTime(absl::Minutes(25));
    const double before = Received();
    stream->Write(element);
    WaitUntil([&] { return Received() > before; }, "payload received");
  }
  EXPECT_GT(Held().device_reserved, 0u);
  PassTime(absl::Minutes(11));
  v1::SolveResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_THAT(stream->Finish().error_details(), HasSubstr("UPLOAD_SLOW"));
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

TEST_F(RpcLoadTest, FullStagingDelaysTheUploadAndLosesNothing) {
  StartServer();
  device().HoldUploads();
  v1::Factor factor;
  std::thread uploading([&] { EXPECT_TRUE(Factorize(300, &factor, 5).ok()); });
  WaitUntil([this] { return device().waiting_uploads() > 0; }, "waiting for staging memory");
  device().ReleaseUploads();
  uploading.join();
  Solved solved;
  ASSERT_TRUE(Solve(factor.handle(), std::vector<double>(300, 1.0), &solved).ok());
  EXPECT_LT(solved.result.backward_error(), 1e-14);
}

// The upload resumes twice: for its data and for the end of its stream. Only one of the two may
// submit the job.
TEST_F(RpcLoadTest, AnUploadThatResumesTwiceSubmitsOneJob) {
  StartServer();
  const int jobs = failpoints().reached("scheduler.job");
  device().HoldUploads();
  device().factor_gate().Close();
  v1::Factor factor;
  std::thread uploading([&] {
    v1::FactorizeRequest request;
    *request.mutable_header()->mutable_matrix() = Dense(10, 10);
    grpc::ClientContext context;
    auto stream = stub().Factorize(&context);
    stream->Write(request);
    request.clear_header();
    request.set_data(Bytes(Matrix(10)));
    stream->Write(request);
    stream->WritesDone();
    v1::FactorizeResponse response;
    while (stream->Read(&response)) {
    }
    EXPECT_TRUE(stream->Finish().ok());
  });
  WaitUntil([this] { return device().waiting_uploads() == 2; }, "two wakers");
  device().ReleaseUploads();
  device().factor_gate().WaitUntilHeld();
  // Threads take tasks in order. When each thread holds one more task, both callbacks have
  // finished.
  ThreadPool& threads = *core().engine.devices.slots()[0]->releasing;
  const auto over = std::make_shared<Gate>();  // shared, because threads may leave it late
  over->Close();
  for (int i = 0; i < threads.thread_count(); ++i) {
    threads.Schedule([over] { over->Pass(); });
  }
  over->WaitUntilHeld(threads.thread_count());
  over->Open();
  device().factor_gate().Open();
  uploading.join();
  const Holdings held = Idle();
  EXPECT_EQ(held, (Holdings{.device_reserved = held.device_reserved,
                            .device_bytes = held.device_bytes,
                            .factors = 1}));
  EXPECT_EQ(failpoints().reached("scheduler.job"), jobs + 1);
}

TEST_F(RpcLoadTest, StagingThatStaysFullEndsTheUpload) {
  StartServer();
  device().HoldUploads();
  grpc::Status status;
  std::thread uploading([&] {
    v1::Factor factor;
    status = Factorize(300, &factor);
  });
  WaitUntil([this] { return device().waiting_uploads() > 0; }, "waiting for staging memory");
  components().Housekeep();
  EXPECT_EQ(Held().uploads, 1);
  PassTime(absl::Seconds(31));
  uploading.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("staging memory"));
  device().ReleaseUploads();
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcLoadTest, StagingThatStaysFullEndsATextUpload) {
  Config config = SmallConfig();
  config.limits.transfer.idle_timeout = absl::Milliseconds(1);
  StartServer({}, config);
  device().HoldUploads();
  grpc::ClientContext context;
  auto stream = stub().Factorize(&context);
  v1::FactorizeRequest request;
  request.mutable_header()->mutable_matrix()->mutable_matrix_market();
  request.set_data("%%MatrixMarket matrix array real general\n2 2\n4\n1\n1\n4\n");
  stream->Write(request);
  stream->WritesDone();
  v1::FactorizeResponse response;
  while (stream->Read(&response)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  device().ReleaseUploads();
  ExpectHeldSoon(Holdings());
}

// A scrape returns the last values of the device and their age.
TEST_F(RpcLoadTest, AScrapeDoesNotWaitForADevice) {
  StartServer();
  constexpr char kAsked[] = "fake_device.memory_stats";
  const auto scrape = [&] {
    return std::async(std::launch::async, [&] { return core().metrics.Scrape(); });
  };
  failpoints().Hold(kAsked);
  const int asked = failpoints().reached(kAsked);
  std::future<std::string> first = scrape();
  failpoints().AwaitReached(kAsked, asked + 1);
  failpoints().Advance(absl::Seconds(10));
  std::future<std::string> second = scrape();
  EXPECT_EQ(second.wait_for(absl::ToChronoSeconds(kTestTimeout)), std::future_status::ready);
  failpoints().Release(kAsked);
  first.wait();
  EXPECT_GE(SampleOf(second.get(), "crout_device_memory_age_seconds{device=\"cuda:0\"}"), 10.0);
}

}  // namespace
}  // namespace crout::testing::load_test
