// SPDX-License-Identifier: Apache-2.0

// Tests calls that are opened and reset at once (CVE-2023-44487), as fast as a connection accepts
// them.
#include <grpcpp/client_context.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/attacks/http2_frames.h"
#include "tests/e2e/harness/certificates.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/support/peers/http_peer.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::reset_flood_test {
namespace {

using crout::testing::HttpPeer;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kConnections = 8;
constexpr int kCallsOfEach = 25'000;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kHostBudget = 512 * kMiB;
constexpr int64_t kReceiveBuffers = 64 * kMiB;
constexpr int64_t kCallMemory = 32 * kMiB;
// The limit for resident memory in docs/operations/sizing.md.
constexpr int64_t kMaxResident =
    (kHostBudget + kReceiveBuffers + kCallMemory) / 10 * 11 + 256 * kMiB;

// Returns an HPACK literal (RFC 7541) that is added to the dynamic table.
std::string Entering(const std::string& name, const std::string& value) {
  return std::string(1, '\x40') + static_cast<char>(name.size()) + name +
         static_cast<char>(value.size()) + value;
}

constexpr char kServerInfo[] = "/crout.v1.FactorizationService/GetServerInfo";

// Returns the bytes of a connection that opens and resets kCallsOfEach calls of `path`, each with
// as few bytes as possible.
std::string Flood(const std::string& path = kServerInfo) {
  constexpr char kEndHeaders = 4;
  const std::string post_http = "\x83\x86";  // entries of the static table
  const std::string first = post_http + Entering(":path", path) +
                            Entering(":authority", "localhost") + Entering("te", "trailers") +
                            Entering("content-type", "application/grpc");
  const std::string later = post_http + "\xc1\xc0\xbf\xbe";  // entries added by `first`
  std::string flood = Preface();
  for (uint32_t call = 0; call < kCallsOfEach; ++call) {
    const uint32_t stream = 2 * call + 1;
    flood += Frame(/*HEADERS*/ 1, kEndHeaders, stream, call == 0 ? first : later);
    flood += Frame(/*RST_STREAM*/ 3, 0, stream, std::string("\0\0\0\x08", 4));
  }
  return flood;
}

std::vector<std::string> SmallBudgets(std::vector<std::string> more = {}) {
  more.insert(more.end(), {absl::StrCat("--host-budget=", kHostBudget),
                           absl::StrCat("--receive-buffers=", kReceiveBuffers),
                           absl::StrCat("--call-memory=", kCallMemory), "--log-calls=none"});
  return more;
}

// Returns the number of calls that the daemon has ended, except calls of the standard services.
int64_t CallsSeen(const std::string& metrics) {
  int64_t calls = 0;
  for (const auto& line : absl::StrSplit(metrics, '\n')) {
    if (!absl::StartsWith(line, "crout_requests_total{")) continue;
    double count = 0;
    EXPECT_TRUE(absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &count)) << line;
    calls += static_cast<int64_t>(count);
  }
  return calls;
}

// Calls `attack` on kConnections threads; each call must return when the server has closed its
// connection. Checks the effects on the daemon and on an honest client.
template <class Attack>
void RunFlood(Daemon& daemon, Client& honest, const Attack& attack) {
  ASSERT_OK(honest.ServerInfo());
  std::vector<std::thread> attackers;
  for (int i = 0; i < kConnections; ++i) attackers.emplace_back(attack);
  int64_t answered = 0;
  std::atomic<bool> over = false;
  std::thread client([&] {
    while (!over) answered += honest.ServerInfo().ok() ? 1 : 0;
  });
  for (std::thread& attacker : attackers) attacker.join();
  over = true;
  client.join();
  // The memory for calls may be full until the last calls of the flood have ended.
  EXPECT_TRUE(Eventually([&] { return honest.ServerInfo().ok(); }));
  EXPECT_LE(StatusBytes(daemon.process().pid(), "VmHWM"), kMaxResident);
  // Most calls of the flood were dropped or refused before the server counted them.
  EXPECT_LE(CallsSeen(daemon.ScrapeMetrics()) - answered, kConnections * kCallsOfEach / 4);
  EXPECT_TRUE(daemon.Logs({"connection_closed"}));
  EXPECT_TRUE(Eventually([&] { return HoldingsOf(honest) == Holdings(); })) << HoldingsOf(honest);
}

class PlainFloodTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PlainFloodTest, IsBounded) {
  Daemon daemon(SmallBudgets());
  const std::string flood = Flood(GetParam());
  const auto honest = daemon.NewClient();
  RunFlood(daemon, *honest, [&] {
    HttpPeer peer(daemon.address());
    peer.Send(flood);
    peer.ReadToEnd();
    EXPECT_TRUE(peer.ended());
  });
}

// The paths are those of a unary method, a streaming method, a standard service and an unknown
// method.
INSTANTIATE_TEST_SUITE_P(Paths, PlainFloodTest,
                         ::testing::Values(kServerInfo, "/crout.v1.FactorizationService/Factorize",
                                           "/grpc.health.v1.Health/Check", "/no.Such/Method"));

TEST(ResetFloodTest, OfTlsConnectionsIsBounded) {
  const TempDir files;
  MakeAuthority(files, "ca");
  MakeCertificate(files, "server", "ca");
  Daemon daemon(SmallBudgets(
      {"--tls-cert=" + files.File("server.crt"), "--tls-key=" + files.File("server.key")}));
  std::ofstream(files.File("flood"), std::ios::binary) << Flood();
  ClientOptions options;
  options.server = daemon.address();
  options.tls = TlsOptions{files.File("ca.crt")};
  options.retry.max_attempts = 1;
  const auto honest = Client::Connect(options);
  ASSERT_OK(honest);
  RunFlood(daemon, **honest, [&] {
    RunToEnd({"/bin/sh", "-c",
              "openssl s_client -quiet -alpn h2 -connect " + daemon.address() + " < " +
                  files.File("flood") + " > /dev/null 2>&1"});
  });
}

// Many clients share a connection and cancel every second call at once.
TEST(ResetFloodTest, AProxyWhoseClientsCancelStaysConnected) {
  constexpr int kClients = 64;
  constexpr int kCallsOfClient = 60;
  Daemon daemon({"--log-calls=none"});
  const auto channel = daemon.NewChannel();
  const auto stub = v1::FactorizationService::NewStub(channel);
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      for (int call = 0; call < kCallsOfClient; ++call) {
        grpc::ClientContext cancelled;
        const auto stream = stub->Factorize(&cancelled);
        cancelled.TryCancel();
        EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
        grpc::ClientContext kept;
        v1::GetServerInfoResponse info;
        const grpc::Status status = stub->GetServerInfo(&kept, {}, &info);
        EXPECT_TRUE(status.ok()) << status.error_message();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_READY);
  EXPECT_THAT(daemon.process().Errors(), Not(HasSubstr("connection_closed")));
}

}  // namespace
}  // namespace crout::e2e::reset_flood_test
