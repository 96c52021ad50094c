// SPDX-License-Identifier: Apache-2.0

// Tests the drain after SIGTERM: the daemon reports that it is not ready but serves calls; then it
// refuses new calls, lets open calls finish and exits with 0.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cpp/grpc_status.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/harness/health.h"
#include "tests/e2e/harness/raw_calls.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::drain_test {
namespace {

constexpr char kService[] = "crout.v1.FactorizationService";

absl::StatusOr<FactorDescription> FactorSmall(Client& client) {
  const std::vector<double> a = {4, 1, 1, 3};
  return client.Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 2, 2), {}, {});
}

// An upload of which all but the last eight bytes are sent.
class OpenUpload {
 public:
  explicit OpenUpload(Daemon& daemon)
      : stub_(daemon.NewStub()), stream_(stub_->Factorize(&context_)) {
    v1::FactorizeRequest request;
    *request.mutable_header()->mutable_matrix() = DenseSpecOf(kOrder, kOrder);
    request.set_data(bytes_.substr(0, bytes_.size() - 8));
    EXPECT_TRUE(stream_->Write(request));
  }

  absl::Status Complete() {
    v1::FactorizeRequest rest;
    rest.set_data(bytes_.substr(bytes_.size() - 8));
    stream_->Write(rest);
    stream_->WritesDone();
    return Await();
  }

  // Waits until the server ends the call. Returns its status.
  absl::Status Await() {
    v1::FactorizeResponse response;
    while (stream_->Read(&response)) {
    }
    return internal::ToAbslStatus(stream_->Finish());
  }

 private:
  static constexpr int64_t kOrder = 100;
  const std::string bytes_ = DominantBytes(kOrder);
  const std::unique_ptr<v1::FactorizationService::Stub> stub_;
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::FactorizeRequest, v1::FactorizeResponse>>
      stream_;
};

TEST(DrainTest, GraceThenRefusalThenTheEndOfRunningCalls) {
  // Uploads have no time limit, so that one is still open after an hour.
  Daemon daemon({"--drain-grace=1h", "--drain-limit=1h", "--upload-idle-timeout=inf",
                 "--upload-min-rate=0", "--upload-max-time=inf"},
                "croutd_test");
  const auto client = daemon.NewClient();
  HealthWatch watch(daemon.NewChannel(), kService);
  EXPECT_EQ(watch.Next(), Health::kServing);
  OpenUpload upload(daemon);
  ASSERT_TRUE(Eventually([&] { return HoldingsOf(*client).device_bytes > 0; }));

  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(watch.Next(), Health::kNotServing);
  EXPECT_EQ(CheckHealth(daemon.NewChannel(), ""), Health::kNotServing);
  // All calls are served during the grace period.
  EXPECT_THAT(FactorSmall(*client), crout::testing::IsOk());
  const auto info = client->ServerInfo();
  ASSERT_THAT(info, crout::testing::IsOk());
  EXPECT_TRUE(info->draining);

  // After the grace period, new calls are refused with a reason.
  daemon.failpoints().Advance(absl::Hours(1));
  absl::Status refused;
  EXPECT_TRUE(Eventually([&] {
    refused = FactorSmall(*client).status();
    return !refused.ok();
  }));
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_EQ(Reason(refused), "DRAINING");
  EXPECT_EQ(client->Describe("aaaaaaaaaaaaaaaaaaaaaaaaaa").status().code(),
            absl::StatusCode::kUnavailable);

  // The open upload may finish, and the daemon waits for it.
  EXPECT_TRUE(daemon.process().running());
  EXPECT_THAT(upload.Complete(), crout::testing::IsOk());
  EXPECT_EQ(daemon.process().Wait(), 0) << daemon.process().Errors();
}

TEST(DrainTest, IdleDaemonEndsAtOnceAfterTheGrace) {
  Daemon daemon({"--drain-grace=0s", "--drain-limit=1h"});
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(), 0);
}

TEST(DrainTest, CallsBeyondTheLimitAreCancelled) {
  Daemon daemon({"--drain-grace=0s", "--drain-limit=300ms"});
  OpenUpload upload(daemon);
  const auto client = daemon.NewClient();
  ASSERT_TRUE(Eventually([&] { return HoldingsOf(*client).device_bytes > 0; }));
  daemon.process().Signal(SIGTERM);
  const absl::Status status = upload.Await();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(Reason(status), "DRAINING");
  EXPECT_EQ(daemon.process().Wait(), 0);
}

TEST(DrainTest, AStoppedReaderDoesNotDelayTheExit) {
  constexpr int64_t kOrder = 600;
  constexpr size_t kLastChunk = size_t{1} << 20;
  Daemon daemon({"--drain-grace=0s", "--drain-limit=300ms"});
  const std::string bytes = DominantBytes(kOrder);
  const auto* elements = reinterpret_cast<const double*>(bytes.data());
  const auto matrix =
      MatrixSource::Dense(absl::MakeConstSpan(elements, kOrder * kOrder), kOrder, kOrder);
  const auto factor = daemon.NewClient()->Factor(matrix, {}, {});
  ASSERT_THAT(factor, crout::testing::IsOk());

  // The flow control window is smaller than a chunk, so that the last chunk is sent only if the
  // client reads.
  const auto stub = daemon.NewStub();
  v1::GetFactorsRequest request;
  request.set_handle(factor->handle);
  grpc::ClientContext context;
  const auto stream = stub->GetFactors(&context, request);
  v1::GetFactorsResponse response;
  size_t read = 0;
  while (read + kLastChunk < bytes.size() && stream->Read(&response)) {
    read += response.data().size();
  }
  const auto client = daemon.NewClient();
  EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client).streams_busy == 0; }));
  EXPECT_GE(HoldingsOf(*client).host_bytes, static_cast<int64_t>(bytes.size()));

  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(), 0);
  EXPECT_THAT(daemon.process().Errors(), ::testing::HasSubstr("open_calls_cancelled"));
  EXPECT_THAT(daemon.process().Errors(), ::testing::HasSubstr("daemon_stopped"));
  EXPECT_THAT(daemon.process().Errors(), ::testing::Not(::testing::HasSubstr("jobs_abandoned")));
}

TEST(DrainTest, SecondSignalCancelsAtOnce) {
  Daemon daemon({"--drain-grace=1h", "--drain-limit=1h"});
  OpenUpload upload(daemon);
  const auto client = daemon.NewClient();
  ASSERT_TRUE(Eventually([&] { return HoldingsOf(*client).device_bytes > 0; }));
  daemon.process().Signal(SIGTERM);
  ASSERT_TRUE(
      Eventually([&] { return CheckHealth(daemon.NewChannel(), "") == Health::kNotServing; }));
  EXPECT_TRUE(daemon.process().running());
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(upload.Await().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(daemon.process().Wait(), 0);
}

TEST(DrainTest, SecondSignalAfterTheGraceCancels) {
  Daemon daemon({"--drain-grace=0s", "--drain-limit=1h"});
  OpenUpload upload(daemon);
  const auto client = daemon.NewClient();
  ASSERT_TRUE(Eventually([&] { return HoldingsOf(*client).device_bytes > 0; }));
  daemon.process().Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return !FactorSmall(*client).ok(); }));
  EXPECT_TRUE(daemon.process().running());
  daemon.process().Signal(SIGINT);
  EXPECT_EQ(upload.Await().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(daemon.process().Wait(), 0);
}

}  // namespace
}  // namespace crout::e2e::drain_test
