// SPDX-License-Identifier: Apache-2.0

// Tests gRPC health checks, reflection and the pages of the metrics port: authorization, and limits
// for duration and number.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/grpc_status.h"
#include "crout/status.h"
#include "server/auth/token.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/harness/health.h"

namespace crout::e2e::standard_services_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
constexpr char kReflect[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kListServices[] = "\x3a\x01*";  // field 7, "*"

// A call of any method, whose requests are given as bytes.
class RawCall {
 public:
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const char* method,
          const std::string& token = "")
      : stub_(channel) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + kTestTimeout));
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(nullptr);
    Await();
  }
  ~RawCall() {
    context_.TryCancel();
    if (!ended_) End().IgnoreError();
  }
  RawCall(const RawCall&) = delete;  // the call refers to the object
  RawCall& operator=(const RawCall&) = delete;

  void Query(const std::string& message) {
    const grpc::Slice slice(message);
    call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    Await();
  }
  // Returns whether a reply arrives.
  bool Read() {
    grpc::ByteBuffer reply;
    call_->Read(&reply, nullptr);
    return Await();
  }
  absl::Status End() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Await();
    ended_ = true;
    return internal::ToAbslStatus(status);
  }
  // Returns OK if a reply arrives; otherwise returns the status of the call.
  absl::Status Refusal() { return Read() ? absl::OkStatus() : End(); }

 private:
  bool Await() {
    void* tag;
    bool ok = false;
    queue_.Next(&tag, &ok);
    return ok;
  }

  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool ended_ = false;
};

class StandardServicesTest : public ::testing::Test {
 protected:
  StandardServicesTest() { Write(Line("probe", "metrics") + Line("solver", "solve")); }

  // Returns the section of an identity. Its token equals its name.
  static std::string Line(const std::string& name, const std::string& role) {
    return absl::StrCat("[", name, "]\ntenants = a\nroles = ", role,
                        "\ntoken = ", FormatTokenHash(HashToken(name)), "\n");
  }
  void Write(const std::string& identities) const {
    const std::string next = files_.File("identities.next");
    WriteFile(next, identities);
    ASSERT_EQ(chmod(next.c_str(), 0600), 0);
    ASSERT_EQ(std::rename(next.c_str(), files_.File("identities").c_str()), 0);
  }
  std::vector<std::string> RoleFlags() const {
    return {"--identities=" + files_.File("identities"), "--health=roles", "--reflection=roles",
            "--metrics-access=off"};
  }
  static absl::Status Query(const Daemon& daemon, const char* method, const std::string& token) {
    RawCall call(daemon.NewChannel(), method, token);
    call.Query(method == kReflect ? kListServices : "");
    return call.Refusal();
  }

  const TempDir files_;
};

TEST_F(StandardServicesTest, RolesDetermineAccess) {
  Daemon daemon(RoleFlags());
  for (const char* const method : {kCheck, kWatch, kReflect}) {
    SCOPED_TRACE(method);
    const bool health = method != kReflect;
    EXPECT_TRUE(Query(daemon, method, health ? "probe" : "solver").ok());
    const absl::Status nobody = Query(daemon, method, "");
    EXPECT_TRUE(absl::IsUnauthenticated(nobody)) << nobody;
    EXPECT_THAT(std::string(nobody.message()), HasSubstr("send a token"));
    const absl::Status other = Query(daemon, method, health ? "solver" : "probe");
    EXPECT_TRUE(absl::IsPermissionDenied(other)) << other;
    EXPECT_THAT(
        std::string(other.message()),
        HasSubstr(absl::StrCat("may not call ", std::string(method).substr(1),
                               ": the call needs the role ", health ? "metrics" : "solve")));
  }
  EXPECT_TRUE(daemon.Logs({"caller_refused", "ipv4:127.0.0.1:", "grpc.health.v1.Health/Watch"}))
      << daemon.process().Errors();
}

TEST_F(StandardServicesTest, RefusalsOfGuessesAreDelayed) {
  const Daemon daemon(RoleFlags());
  for (const char* const method : {kCheck, kReflect}) {
    const absl::Time begin = absl::Now();
    EXPECT_TRUE(absl::IsUnauthenticated(Query(daemon, method, "guess")));
    EXPECT_GE(absl::Now() - begin, absl::Milliseconds(950)) << method;
  }
}

TEST_F(StandardServicesTest, AWithdrawnTokenEndsItsCalls) {
  const Daemon daemon(RoleFlags());
  const auto channel = daemon.NewChannel();
  RawCall watch(channel, kWatch, "probe");
  watch.Query("");
  ASSERT_TRUE(watch.Read());
  RawCall reflect(channel, kReflect, "solver");
  Write(Line("other", "admin"));
  EXPECT_TRUE(absl::IsUnauthenticated(watch.Refusal()));
  EXPECT_TRUE(absl::IsUnauthenticated(reflect.Refusal()));
}

TEST_F(StandardServicesTest, DisabledServicesAreUnimplemented) {
  const Daemon daemon({"--health=off", "--reflection=off", "--metrics-access=off"});
  for (const char* const method : {kCheck, kWatch, kReflect, "/crout.v1.None/None"}) {
    EXPECT_TRUE(absl::IsUnimplemented(Query(daemon, method, ""))) << method;
  }
  EXPECT_THAT(daemon.Get("/metrics"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(daemon.Get("/"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(daemon.Get("/readyz"), StartsWith("HTTP/1.1 200"));
}

TEST_F(StandardServicesTest, RequestsAreLimitedInNumberAndSize) {
  const Daemon daemon;
  RawCall large(daemon.NewChannel(), kCheck);
  large.Query("\x0a\xff\xff\x07" + std::string((8 << 14) - 1, 's'));
  const absl::Status refused = large.Refusal();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("64 KiB"));
  RawCall torn(daemon.NewChannel(), kReflect);
  torn.Query("\x3a\x05*");
  EXPECT_TRUE(absl::IsInvalidArgument(torn.Refusal()));
  EXPECT_EQ(CheckHealth(daemon.NewChannel(), "none"), Health::kUnknownService);
}

// However many calls of the standard services are open, new ones are served.
TEST_F(StandardServicesTest, TheOldestCallsAreEvicted) {
  constexpr int kMax = 1024;
  constexpr int kOfConnection = 200;
  const Daemon daemon;
  std::shared_ptr<grpc::Channel> channel = daemon.NewChannel();
  std::deque<RawCall> calls;
  calls.emplace_back(channel, kWatch);
  calls.back().Query("");
  ASSERT_TRUE(calls.back().Read());  // answered before the others begin, so it is the oldest
  // Opens one call more than permitted. The order of arrival over different connections is
  // undefined.
  for (int i = 1; i <= kMax; ++i) {
    if (i % kOfConnection == 0) channel = daemon.NewChannel();
    calls.emplace_back(channel, i % 2 == 0 ? kWatch : kReflect);
    if (i % 4 == 0) calls.back().Query("");  // the other calls send no request
  }
  const auto is_over = [&](RawCall& call) {
    while (call.Read()) {
    }
    return absl::IsResourceExhausted(call.End());
  };
  EXPECT_TRUE(is_over(calls.front()));
  calls.pop_front();
  EXPECT_NE(ListServices(daemon.NewChannel()).find("crout.v1"), std::string::npos);
  calls.back().Query(kListServices);
  EXPECT_TRUE(calls.back().Read()) << "the newest goes on";
  EXPECT_TRUE(daemon.NewClient()->ServerInfo().ok());
}

}  // namespace
}  // namespace crout::e2e::standard_services_test
