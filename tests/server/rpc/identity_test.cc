// SPDX-License-Identifier: Apache-2.0

// Tests authentication and authorization of calls, which precede the reading of their payloads.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "kernels/util/clock.h"
#include "server/auth/token.h"
#include "server/engine/cache/handle.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::identity_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string LineOf(const std::string& token) {
  return absl::StrCat("token = ", FormatTokenHash(HashToken(token)), "\n");
}

class IdentityTest : public RpcTest {
 protected:
  ~IdentityTest() override { unlink(path_.c_str()); }

  void StartWithIdentities(const std::string& identities, Config config = SmallConfig()) {
    WriteIdentities(identities);
    config.identities_file = path_;
    StartServer({}, std::move(config));
  }
  // Replaces the file by renaming another, as operators should.
  void WriteIdentities(const std::string& text) const {
    const std::string next = path_ + ".next";
    std::ofstream(next) << text;
    ASSERT_EQ(chmod(next.c_str(), 0600), 0);
    ASSERT_EQ(std::rename(next.c_str(), path_.c_str()), 0);
  }

  // Returns a context that sends this token and tenant. Empty strings are not sent.
  static std::unique_ptr<grpc::ClientContext> ContextOf(const std::string& token,
                                                        const std::string& tenant = "") {
    auto context = std::make_unique<grpc::ClientContext>();
    if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
    if (!tenant.empty()) context->AddMetadata("crout-tenant", tenant);
    return context;
  }
  grpc::Status Info(grpc::ClientContext* context) {
    v1::GetServerInfoResponse response;
    return stub().GetServerInfo(context, {}, &response);
  }
  grpc::Status Release(grpc::ClientContext* context, const std::string& handle) {
    v1::ReleaseFactorRequest request;
    request.set_handle(handle);
    v1::ReleaseFactorResponse response;
    return stub().ReleaseFactor(context, request, &response);
  }
  grpc::Status FactorizeAs(grpc::ClientContext* context, v1::Factor* factor) {
    const auto stream = stub().Factorize(context);
    v1::FactorizeRequest request;
    *request.mutable_header()->mutable_matrix() = Dense(4, 4);
    request.set_data(Bytes(Matrix(4)));
    stream->Write(request);
    stream->WritesDone();
    v1::FactorizeResponse response;
    while (stream->Read(&response)) {
      if (response.has_factor()) *factor = response.factor();
    }
    return stream->Finish();
  }
  static std::string ReasonIn(const grpc::Status& status) {
    google::rpc::Status details;
    google::rpc::ErrorInfo info;
    const bool read = details.ParseFromString(status.error_details()) &&
                      details.details_size() > 0 && details.details(0).UnpackTo(&info);
    return read ? info.reason() : "";
  }
  std::optional<double> Refused(const std::string& reason) {
    return SampleOf(core().metrics.Scrape(),
                    "crout_callers_refused_total{reason=\"" + reason + "\"}");
  }

  const std::string path_ =
      ::testing::TempDir() + "/crout_identity_test." + std::to_string(getpid());
  const std::string both_ = "[alice]\n" + LineOf("a") + "tenants = one, two\nroles = factor\n" +
                            "[bob]\n" + LineOf("b") + "tenants = two\nroles = solve\n";
};

TEST_F(IdentityTest, CallsWithoutCredentialsAreRefusedWithAdvice) {
  StartWithIdentities(both_);
  const grpc::Status status = Info(ContextOf("").get());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), AllOf(HasSubstr("--token-file"), HasSubstr("certificate")));
  EXPECT_EQ(ReasonIn(status), "NO_CREDENTIALS");
  EXPECT_EQ(Refused("no_credentials"), 1);
}

TEST_F(IdentityTest, ACallHasOneTenant) {
  StartWithIdentities(both_);
  const auto two = ContextOf("a", "one");
  two->AddMetadata("crout-tenant", "two");
  EXPECT_EQ(Info(two.get()).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(IdentityTest, TokensMustBeSingleBearerValues) {
  StartWithIdentities(both_);
  for (const std::string bad : {"Basic YTpi", "a", "Bearer"}) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", bad);
    const grpc::Status status = Info(&context);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << bad;
    EXPECT_EQ(ReasonIn(status), "BAD_CREDENTIALS") << bad;
  }
  const auto two = ContextOf("a");
  two->AddMetadata("authorization", "Bearer b");
  EXPECT_EQ(ReasonIn(Info(two.get())), "BAD_CREDENTIALS");
  grpc::ClientContext lower;
  lower.AddMetadata("authorization", "bearer a");
  EXPECT_TRUE(Info(&lower).ok());
}

TEST_F(IdentityTest, RefusalsOfUnknownTokensAreDelayed) {
  StartWithIdentities(both_);
  grpc::CompletionQueue queue;
  const auto context = ContextOf("guess");
  const auto call = stub().AsyncGetServerInfo(context.get(), {}, &queue);
  v1::GetServerInfoResponse response;
  grpc::Status status;
  call->Finish(&response, &status, &queue);
  WaitUntil([&] { return core().refused_memory.reserved() > 0; }, "refused");
  PassTime(absl::Seconds(2));
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(ReasonIn(status), "UNKNOWN_TOKEN");
  EXPECT_THAT(status.error_message(), Not(HasSubstr("guess")));
  EXPECT_EQ(Refused("unknown_token"), 1);
  Idle();
  EXPECT_EQ(core().refused_memory.reserved(), 0u);
  queue.Shutdown();
}

TEST_F(IdentityTest, RefusalsBeyondTheirMemoryAreNotDelayed) {
  StartWithIdentities(both_);
  const auto all = core().refused_memory.TryReserve(core().refused_memory.limit());
  EXPECT_EQ(ReasonIn(Info(ContextOf("guess").get())), "UNKNOWN_TOKEN");
  EXPECT_TRUE(Info(ContextOf("a").get()).ok());
}

// Open calls of one identity fill the memory for calls, but another identity is still served.
TEST_F(IdentityTest, CallsOfOneIdentityDoNotCauseRefusalsOfOthers) {
  constexpr int kFit = 8;
  Config config = SmallConfig();
  config.call_memory_bytes = kFit * ServerCore::kCallBytes;
  StartWithIdentities(both_, config);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<
      std::unique_ptr<grpc::ClientReaderWriter<v1::FactorizeRequest, v1::FactorizeResponse>>>
      calls;
  for (size_t i = 1; i <= kFit; ++i) {
    contexts.push_back(ContextOf("a"));
    calls.push_back(stub().Factorize(contexts.back().get()));
    WaitUntil([&] { return core().call_memory.reserved() == i * ServerCore::kCallBytes; },
              "alone, alice may hold all");
  }
  EXPECT_EQ(ReasonIn(Info(ContextOf("a").get())), "MEMORY_EXHAUSTED");
  const grpc::Status other = Info(ContextOf("b").get());
  EXPECT_TRUE(other.ok()) << other.error_message();
  // One call is ended for the call of bob, whose small reply needs no further memory.
  const grpc::Status ended = calls.back()->Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonIn(ended), "MEMORY_EXHAUSTED");
  EXPECT_THAT(ended.error_message(), HasSubstr("a call of another client"));
  for (int i = 0; i < kFit - 1; ++i) {
    calls[i]->WritesDone();
    EXPECT_EQ(calls[i]->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << i;
  }
  WaitUntil([&] { return core().call_memory.reserved() == 0; }, "given back");
}

TEST_F(IdentityTest, RolesDetermineWhichMethodsMayBeCalled) {
  StartWithIdentities(both_);
  v1::Factor factor;
  const grpc::Status denied = FactorizeAs(ContextOf("b").get(), &factor);
  EXPECT_EQ(denied.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(denied.error_message(), HasSubstr("the role factor"));
  EXPECT_EQ(ReasonIn(denied), "ROLE");
  EXPECT_EQ(Refused("role"), 1);
  ASSERT_TRUE(FactorizeAs(ContextOf("a").get(), &factor).ok());
  EXPECT_EQ(Release(ContextOf("b", "two").get(), factor.handle()).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(Release(ContextOf("a").get(), factor.handle()).ok());
}

TEST_F(IdentityTest, TheRoleSolveDownloadsButDoesNotFactor) {
  StartWithIdentities(both_);
  const auto refused_for_role = [&](const grpc::Status& status) {
    return ReasonIn(status) == "ROLE";
  };
  const auto solve_alone = ContextOf("b");
  auto both = stub().FactorizeAndSolve(solve_alone.get());
  EXPECT_TRUE(refused_for_role(both->Finish()));
  const auto download = ContextOf("b");
  auto members = stub().GetFactors(download.get(), {});
  EXPECT_EQ(members->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "no handle";
}

TEST_F(IdentityTest, WithoutPermissionToReleaseALeaseCanOnlyGrow) {
  StartWithIdentities(both_);
  v1::Factor factor;
  ASSERT_TRUE(FactorizeAs(ContextOf("a", "two").get(), &factor).ok());
  const auto renew = [&](const std::string& token, int64_t seconds) {
    v1::RenewLeaseRequest request;
    request.set_handle(factor.handle());
    request.mutable_lease()->set_seconds(seconds);
    v1::RenewLeaseResponse response;
    EXPECT_TRUE(stub().RenewLease(ContextOf(token, "two").get(), request, &response).ok());
    return response.lease_expire_time().seconds();
  };
  const int64_t end = factor.lease_expire_time().seconds();
  EXPECT_EQ(renew("b", 1), end);
  EXPECT_GT(renew("b", 10'000), end);
  EXPECT_LT(renew("a", 100), end);
}

TEST_F(IdentityTest, WithoutPermissionToFactorNothingCanBePinned) {
  StartWithIdentities(both_);
  v1::Factor factor;
  ASSERT_TRUE(FactorizeAs(ContextOf("a", "two").get(), &factor).ok());
  const auto pin = [&](const std::string& token, bool pinned) {
    v1::RenewLeaseRequest request;
    request.set_handle(factor.handle());
    request.set_pin(pinned);
    v1::RenewLeaseResponse response;
    return stub().RenewLease(ContextOf(token, "two").get(), request, &response);
  };
  EXPECT_EQ(pin("b", true).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(pin("a", true).ok());
  EXPECT_EQ(pin("b", false).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(pin("a", false).ok());
}

TEST_F(IdentityTest, LoadsOfOtherTenantsAreTheAdmins) {
  StartWithIdentities(both_ + "[root]\n" + LineOf("r") + "tenants = *\nroles = admin\n");
  v1::Factor factor;
  ASSERT_TRUE(FactorizeAs(ContextOf("a", "two").get(), &factor).ok());
  ASSERT_TRUE(FactorizeAs(ContextOf("a", "one").get(), &factor).ok());
  Idle();
  const auto tenants = [&](const std::string& token, const std::string& tenant) {
    v1::GetServerInfoResponse info;
    EXPECT_TRUE(stub().GetServerInfo(ContextOf(token, tenant).get(), {}, &info).ok());
    std::string seen;
    for (const v1::TenantLoad& load : info.tenants()) {
      absl::StrAppend(&seen, load.tenant(), ":", load.cached_factors(), ":",
                      load.device_bytes() + load.host_bytes() > 0 ? "bytes" : "none", ":",
                      load.calls(), " ");
    }
    return seen;
  };
  EXPECT_EQ(tenants("a", "one"), "one:1:bytes:1 ");
  EXPECT_EQ(tenants("b", "two"), "two:1:bytes:1 ");
  Idle();
  EXPECT_EQ(tenants("r", "three"), "one:1:bytes:0 two:1:bytes:0 three:0:none:1 ");
}

TEST_F(IdentityTest, TenantsAreThoseOfTheIdentity) {
  StartWithIdentities(both_);
  const grpc::Status denied = Info(ContextOf("b", "one").get());
  EXPECT_EQ(denied.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ReasonIn(denied), "TENANT");
  EXPECT_THAT(denied.error_message(), HasSubstr("only the tenant two; the call names 'one'"));
  EXPECT_EQ(Info(ContextOf("b", "a b").get()).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(Info(ContextOf("b", "two").get()).ok());

  v1::Factor factor;
  ASSERT_TRUE(FactorizeAs(ContextOf("a").get(), &factor).ok());
  const grpc::Status other = Release(ContextOf("a", "two").get(), factor.handle());
  const grpc::Status none = Release(ContextOf("a", "two").get(), Handle::Random().ToString());
  EXPECT_EQ(other.error_code(), grpc::StatusCode::NOT_FOUND) << "its own tenant is the first";
  EXPECT_EQ(other.error_message(), none.error_message());
  EXPECT_EQ(ReasonIn(other), ReasonIn(none));
  EXPECT_TRUE(Release(ContextOf("a", "one").get(), factor.handle()).ok());
}

TEST_F(IdentityTest, NothingIsReadOrReservedForAForbiddenCall) {
  StartWithIdentities(both_);
  const Holdings before = Held();
  const auto context = ContextOf("b");
  const auto stream = stub().Factorize(context.get());
  v1::FactorizeRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(1024, 1024);
  request.set_data(Bytes(Matrix(128)));
  stream->Write(request);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  Idle();
  EXPECT_EQ(Held(), before);
  EXPECT_EQ(SampleOf(core().metrics.Scrape(), "crout_received_bytes_total"), 0);
}

TEST_F(IdentityTest, WithdrawnTokensEndTheirStreams) {
  StartWithIdentities(both_);
  const Holdings before = Held();
  const auto context = ContextOf("a");
  const auto stream = stub().Factorize(context.get());
  v1::FactorizeRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(64, 64);
  stream->Write(request);
  WaitUntil([&] { return Held().uploads == 1; }, "the upload has begun");
  components().Housekeep();
  EXPECT_EQ(Held().calls, 1u);

  WriteIdentities(both_ + LineOf("another"));
  components().Housekeep();
  EXPECT_EQ(Held().calls, 1u) << "others' tokens are not its own";
  WriteIdentities("[alice]\ntenants = one\nroles = factor\n" + LineOf("new"));
  components().Housekeep();
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("withdrawn"));
  Idle();
  EXPECT_EQ(Held(), before);
  EXPECT_TRUE(Info(ContextOf("new").get()).ok());
}

TEST_F(IdentityTest, TokensExpire) {
  const std::string end =
      absl::FormatTime(absl::RFC3339_sec, WallNow() + absl::Hours(1), absl::UTCTimeZone());
  std::string line = LineOf("a");
  line.pop_back();
  StartWithIdentities("[alice]\n" + line + " until " + end + "\ntenants = one\nroles = factor\n");
  const auto context = ContextOf("a");
  const auto stream = stub().Factorize(context.get());
  WaitUntil([&] { return Held().calls == 1; }, "the call has begun");
  EXPECT_TRUE(Info(ContextOf("a").get()).ok());
  PassTime(absl::Hours(2));
  const grpc::Status status = Info(ContextOf("a").get());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(ReasonIn(status), "EXPIRED_TOKEN");
  EXPECT_NE(stream->Finish().error_code(), grpc::StatusCode::OK);
}

TEST_F(IdentityTest, WithoutIdentitiesEveryCallerIsAdmitted) {
  StartServer();
  EXPECT_TRUE(Info(ContextOf("").get()).ok());
  EXPECT_TRUE(Info(ContextOf("whatever", "anybody").get()).ok());
}

}  // namespace
}  // namespace crout::testing::identity_test
