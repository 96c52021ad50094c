// SPDX-License-Identifier: Apache-2.0

// Tests the options that Client::Connect rejects without connecting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "crout/client.h"
#include "tests/client/fake_service.h"

namespace crout::client_test::options_test {
namespace {

using ::testing::HasSubstr;

absl::Status Connect(const std::string& server, const std::string& tenant = "") {
  return Client::Connect({.server = server, .tenant = tenant}).status();
}

TEST(ClientOptionsTest, TakesEveryFormOfAnAddress) {
  for (const char* server :
       {"127.0.0.1:50051", "solver.example:1", "[::1]:65535", "unix:/run/crout.sock",
        "unix:relative.sock", "unix-abstract:crout", "dns:///solver.example:50051",
        "ipv4:127.0.0.1:50051", "ipv6:[::1]:50051"}) {
    EXPECT_EQ(Connect(server), absl::OkStatus()) << server;
  }
}

// gRPC 1.51 would treat a good connection as failed if a contended absl::Mutex changed errno.
TEST(ClientOptionsDeathTest, AMutexKeepsErrnoAfterConnect) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, without earlier waiters
  const auto contend = [] {
    absl::Mutex mutex;
    bool waiting = false;
    bool never = false;
    std::thread([&] {
      absl::MutexLock lock(&mutex);
      waiting = true;
      mutex.Await(absl::Condition(&never));
    }).detach();
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&waiting));
    errno = 0;
    mutex.AwaitWithTimeout(absl::Condition(&never), absl::Microseconds(1));
    _exit(errno == ENOENT ? 1 : 0);
  };
  EXPECT_EXIT(
      {
        (void)Connect("127.0.0.1:1");
        contend();
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(ClientOptionsTest, ReportsTheMissingPartOfAnAddress) {
  const struct {
    const char* server;
    const char* message;
  } cases[] = {
      {"", "is empty"},
      {"unix:", "ends after its scheme"},
      {"solver.example", "'solver.example' has no port: write host:port"},
      {"[::1]", "has no port"},
      {":50051", "has no host"},
      {"::1:50051", "not in brackets"},
      {"[]:50051", "not in brackets"},
      {"http://solver.example:50051", "is no host and port"},
      {"solver.example:", "no port from 1 to 65535"},
      {"solver.example:0", "no port from 1 to 65535"},
      {"solver.example:65536", "no port from 1 to 65535"},
      {"solver.example:+5", "no port from 1 to 65535"},
      {"solver .example:5", "no printable ASCII"},
      {"s\xc3\xb6lver:5", "no printable ASCII"},
  };
  for (const auto& [server, message] : cases) {
    const absl::Status status = Connect(server);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << server;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << server;
  }
}

TEST(ClientOptionsTest, TokensAreSentOverSecureConnectionsOnly) {
  const auto with_token = [](const std::string& server) {
    return Client::Connect({.server = server, .token = "crout_t"}).status();
  };
  for (const char* server : {"localhost:1", "LOCALHOST:1", "127.8.0.1:1", "[::1]:1",
                             "unix:relative.sock", "unix-abstract:crout"}) {
    EXPECT_EQ(with_token(server), absl::OkStatus()) << server;
  }
  for (const char* server : {"solver.example:1", "192.0.2.1:1", "128.0.0.1:1", "[2001:db8::1]:1",
                             "127.0.0.1.example:1", "ipv4:127.0.0.1:1,192.0.2.1:1"}) {
    EXPECT_THAT(std::string(with_token(server).message()), HasSubstr("give TLS too")) << server;
  }
  EXPECT_EQ(
      Client::Connect({.server = "solver.example:1", .tls = TlsOptions(), .token = "t"}).status(),
      absl::OkStatus());
}

TEST(ClientOptionsTest, TakesTheTenantsOfAServer) {
  const std::string server = "127.0.0.1:1";
  for (const std::string& tenant : {std::string(), std::string("A-z_0.9"), std::string(64, 'a')}) {
    EXPECT_EQ(Connect(server, tenant), absl::OkStatus()) << tenant;
  }
  for (const std::string& tenant :
       {std::string(65, 'a'), std::string("a b"), std::string("t\xc3\xa9"), std::string("a\nb")}) {
    const absl::Status status = Connect(server, tenant);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << tenant;
    EXPECT_THAT(std::string(status.message()), HasSubstr("1 to 64 characters of [A-Za-z0-9_.-]"))
        << tenant;
  }
}

TEST(ClientOptionsTest, CallsHaveThePriorityOfTheClientUnlessTheyHaveTheirOwn) {
  FakeServer server;
  std::string sent;
  server.service.describe = [&](grpc::ServerContext* context, auto&, auto*) {
    const auto [begin, end] = context->client_metadata().equal_range("crout-priority");
    sent = begin == end ? "" : std::string(begin->second.data(), begin->second.size());
    return grpc::Status::OK;
  };
  CallOptions interactive;
  interactive.priority = Priority::kInteractive;
  EXPECT_TRUE(server.NewClient()->Describe("h").ok());
  EXPECT_EQ(sent, "") << "the server's default";
  EXPECT_TRUE(server.NewClient()->Describe("h", interactive).ok());
  EXPECT_EQ(sent, "interactive");
  ClientOptions batch;
  batch.priority = Priority::kBatch;
  EXPECT_TRUE(server.NewClient(batch)->Describe("h").ok());
  EXPECT_EQ(sent, "batch");
  EXPECT_TRUE(server.NewClient(batch)->Describe("h", interactive).ok());
  EXPECT_EQ(sent, "interactive");
}

TEST(ClientOptionsTest, PrioritiesHaveNames) {
  EXPECT_THAT(Names<Priority>(), ::testing::ElementsAre("interactive", "normal", "batch"));
  for (const std::string& name : Names<Priority>())
    EXPECT_EQ(Name(*FromName<Priority>(name)), name);
  EXPECT_EQ(FromName<Priority>("urgent"), std::nullopt);
  EXPECT_EQ(Name(static_cast<Priority>(0)), "0");
  EXPECT_EQ(Name(static_cast<Priority>(4)), "4");
}

}  // namespace
}  // namespace crout::client_test::options_test
