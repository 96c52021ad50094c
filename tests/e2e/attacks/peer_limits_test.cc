// SPDX-License-Identifier: Apache-2.0

// Tests the limits of a connection to a real daemon: headers, streams, pings, silence, age.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "client/cpp/grpc_status.h"
#include "tests/e2e/attacks/http2_frames.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/harness/raw_calls.h"
#include "tests/support/peers/http_peer.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::peer_limits_test {
namespace {

using crout::testing::HttpPeer;
using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string Ping() { return Frame(6, 0, 0, std::string(8, 'p')); }

// Returns an HPACK literal that is not added to the dynamic table.
std::string Header(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name +
         static_cast<char>(value.size()) + value;
}
// Returns the frames of a GetServerInfo call that is reset at once.
std::string CallAndReset(uint32_t stream) {
  const std::string headers = Header(":method", "POST") + Header(":scheme", "http") +
                              Header(":path", "/crout.v1.FactorizationService/GetServerInfo") +
                              Header(":authority", "localhost") + Header("te", "trailers") +
                              Header("content-type", "application/grpc");
  constexpr char kEndHeaders = 4;
  return Frame(/*HEADERS*/ 1, kEndHeaders, stream, headers) +
         Frame(/*RST_STREAM*/ 3, 0, stream, std::string("\0\0\0\x08", 4));
}

double UploadsInFlight(const Daemon& daemon) {
  constexpr char kSeries[] = "\ncrout_uploads_in_flight ";
  const std::string metrics = daemon.ScrapeMetrics();
  const std::string rest = metrics.substr(metrics.find(kSeries) + sizeof kSeries - 1);
  double value = -1;
  EXPECT_TRUE(absl::SimpleAtod(rest.substr(0, rest.find('\n')), &value));
  return value;
}

// A Factorize call of order 1. Complete() sends its eight bytes.
class OpenCall {
 public:
  explicit OpenCall(v1::FactorizationService::Stub& stub) : stream_(stub.Factorize(&context_)) {
    v1::FactorizeRequest request;
    *request.mutable_header()->mutable_matrix() = DenseSpecOf(1, 1);
    EXPECT_TRUE(stream_->Write(request));
  }
  absl::Status Complete() {
    v1::FactorizeRequest rest;
    rest.set_data(Bytes<double>({2}));
    stream_->Write(rest);
    stream_->WritesDone();
    v1::FactorizeResponse response;
    while (stream_->Read(&response)) {
    }
    return internal::ToAbslStatus(stream_->Finish());
  }

 private:
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::FactorizeRequest, v1::FactorizeResponse>>
      stream_;
};

// Calls GetServerInfo with `filler` bytes of metadata.
absl::Status ServerInfo(v1::FactorizationService::Stub& stub, absl::Duration timeout,
                        size_t filler = 0) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  if (filler > 0) context.AddMetadata("x-filler", std::string(filler, 'x'));
  v1::GetServerInfoResponse response;
  return internal::ToAbslStatus(stub.GetServerInfo(&context, {}, &response));
}

TEST(PeerLimitsTest, LargeHeadersAreRefused) {
  Daemon daemon;
  const auto stub = daemon.NewStub();
  EXPECT_OK(ServerInfo(*stub, kTestTimeout, 6000));
  OpenCall beside(*stub);
  const auto other_stub = daemon.NewStub();
  OpenCall elsewhere(*other_stub);
  ASSERT_TRUE(Eventually([&] { return UploadsInFlight(daemon) == 2; }));
  EXPECT_EQ(ServerInfo(*stub, kTestTimeout, 9000).code(), absl::StatusCode::kResourceExhausted);
  // gRPC also closes the connection, and so ends all of its calls, including one that has just
  // begun.
  EXPECT_THAT(beside.Complete().code(),
              AnyOf(absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnavailable));
  EXPECT_TRUE(Eventually([&] { return ServerInfo(*stub, kTestTimeout).ok(); }));
  EXPECT_OK(elsewhere.Complete());
}

TEST(PeerLimitsTest, StreamsOfAConnectionAreLimited) {
  constexpr int kLimit = 256;
  Daemon daemon({"--upload-min-rate=0", "--upload-idle-timeout=0"});
  const auto stub = daemon.NewStub();
  std::vector<std::unique_ptr<OpenCall>> calls;
  for (int i = 0; i < kLimit; ++i) calls.push_back(std::make_unique<OpenCall>(*stub));
  EXPECT_TRUE(Eventually([&] { return UploadsInFlight(daemon) == kLimit; }));
  EXPECT_EQ(ServerInfo(*stub, absl::Milliseconds(300)).code(), absl::StatusCode::kDeadlineExceeded)
      << "one more waits at the client";
  EXPECT_OK(daemon.NewClient()->ServerInfo()) << "another connection has its own";
  EXPECT_OK(calls.back()->Complete());
  calls.pop_back();
  EXPECT_OK(ServerInfo(*stub, kTestTimeout));
  for (const auto& call : calls) EXPECT_OK(call->Complete());
}

// The first ping may arrive at any time. Each further ping arrives too early; the server tolerates
// two.
TEST(PeerLimitsTest, TooManyPingsEndTheConnection) {
  Daemon daemon;
  HttpPeer patient(daemon.address());
  ASSERT_TRUE(patient.Send(Preface() + Ping() + Ping() + Ping()));
  HttpPeer peer(daemon.address());
  ASSERT_TRUE(peer.Send(Preface() + Ping() + Ping() + Ping() + Ping()));
  EXPECT_THAT(peer.ReadToEnd(), HasSubstr("too_many_pings"));
  // At most the first of these pings is not too early, even if the test is slow.
  EXPECT_TRUE(patient.Send(Ping() + Ping() + Ping() + Ping())) << "still there";
  EXPECT_THAT(patient.ReadToEnd(), HasSubstr("too_many_pings"));
  EXPECT_OK(daemon.NewClient()->ServerInfo());
}

// Takes ten seconds, which is the limit.
TEST(PeerLimitsTest, SilentConnectionsAreClosed) {
  Daemon daemon;
  HttpPeer silent(daemon.address());
  HttpPeer half(daemon.address());
  ASSERT_TRUE(half.Send(Preface().substr(0, 20)));
  silent.ReadToEnd();
  EXPECT_TRUE(silent.ended());
  half.ReadToEnd();
  EXPECT_TRUE(half.ended());
  EXPECT_OK(daemon.NewClient()->ServerInfo());
}

// Sends a flood of calls that are reset at once (CVE-2023-44487). It must leave nothing behind, and
// other clients must be served.
TEST(PeerLimitsTest, ResetStreamsLeaveNothing) {
  Daemon daemon({"--log-calls=none"});
  const auto client = daemon.NewClient();
  HttpPeer peer(daemon.address());
  ASSERT_TRUE(peer.Send(Preface()));
  uint32_t stream = 1;
  for (int burst = 0; burst < 20; ++burst) {
    std::string calls;
    for (int i = 0; i < 500; ++i, stream += 2) calls += CallAndReset(stream);
    if (!peer.Send(calls)) break;
    // While the flood fills the memory for calls, other clients get errors that ask for a retry.
    EXPECT_TRUE(Eventually([&] { return client->ServerInfo().ok(); }));
  }
  // The last calls of the flood may hold memory for a short time.
  EXPECT_TRUE(Eventually([&] {
    const auto info = client->ServerInfo();
    return info.ok() && HoldingsIn(*info) == Holdings();
  }));
}

// Returns whether the channel becomes idle, which means that it no longer uses its connection for
// new calls.
bool BecomesIdle(grpc::Channel& channel) {
  const auto deadline = absl::ToChronoTime(absl::Now() + kTestTimeout);
  return channel.WaitForStateChange(GRPC_CHANNEL_READY, deadline) &&
         channel.GetState(false) == GRPC_CHANNEL_IDLE;
}

TEST(PeerLimitsTest, MaximumConnectionAgeEndsNoCall) {
  Daemon daemon({"--max-connection-age=1s", "--upload-min-rate=0", "--upload-idle-timeout=0"});
  const auto channel = daemon.NewChannel();
  const auto stub = v1::FactorizationService::NewStub(channel);
  OpenCall open(*stub);
  ASSERT_TRUE(Eventually([&] { return UploadsInFlight(daemon) == 1; }));
  EXPECT_TRUE(BecomesIdle(*channel));
  OpenCall next(*stub);
  EXPECT_TRUE(Eventually([&] { return UploadsInFlight(daemon) == 2; })) << "on a new connection";
  EXPECT_TRUE(BecomesIdle(*channel));
  EXPECT_OK(open.Complete());
  EXPECT_OK(next.Complete());
}

// Each message exceeds the receive buffers. gRPC is then short of memory, and frees bytes that the
// daemon has already read.
TEST(PeerLimitsTest, FullReceiveBuffersDoNotEndTheDaemon) {
  Daemon daemon({"--receive-buffers=1MiB", "--log-calls=none"});
  constexpr int64_t kN = 700;
  const std::string a = DominantBytes(kN);
  std::vector<std::thread> uploaders;
  for (int i = 0; i < 8; ++i) {
    uploaders.emplace_back([&] {
      const auto stub = daemon.NewStub();
      for (int round = 0; round < 5; ++round) {
        v1::FactorizeRequest request;
        *request.mutable_header()->mutable_matrix() = DenseSpecOf(kN, kN);
        request.set_data(a);
        grpc::ClientContext context;
        // gRPC itself refuses some of the calls.
        (void)Exchange<v1::FactorizeRequest, v1::FactorizeResponse>(stub->Factorize(&context),
                                                                    {request});
      }
    });
  }
  for (std::thread& uploader : uploaders) uploader.join();
  const auto client = daemon.NewClient();
  EXPECT_TRUE(Eventually([&] { return client->ServerInfo().ok(); })) << "the daemon is alive";
}

}  // namespace
}  // namespace crout::e2e::peer_limits_test
