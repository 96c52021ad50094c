// SPDX-License-Identifier: Apache-2.0

// Tests a daemon that authenticates callers: tokens created by croutd, names in certificates,
// revocation.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "crout/status.h"
#include "crout/v1/factorization_service.grpc.pb.h"
#include "tests/e2e/harness/certificates.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/harness/raw_calls.h"
#include "tests/support/peers/http_peer.h"

namespace crout::e2e::identity_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A token and its line in the identity file.
struct Token {
  std::string text;
  std::string line;
};

class IdentityTest : public ::testing::Test {
 protected:
  IdentityTest() {
    MakeAuthority(files_, "ca");
    MakeCertificate(files_, "server", "ca");
  }

  std::string Flag(const std::string& name, const std::string& file) const {
    return "--" + name + "=" + files_.File(file);
  }
  std::vector<std::string> Flags() const {
    return {Flag("tls-cert", "server.crt"), Flag("tls-key", "server.key"),
            Flag("tls-client-ca", "ca.crt"), "--tls-client-certs=optional",
            Flag("identities", "identities")};
  }
  // Replaces the file by renaming another, as operators should.
  void WriteIdentities(const std::string& text) const {
    const std::string next = files_.File("identities.next");
    WriteFile(next, text);
    ASSERT_EQ(chmod(next.c_str(), 0600), 0);
    ASSERT_EQ(std::rename(next.c_str(), files_.File("identities").c_str()), 0);
  }

  static Token MakeToken(const std::vector<std::string>& flags = {}) {
    std::vector<std::string> command = {ProgramPath("croutd"), "token", "create",
                                        "--identity=alice"};
    command.insert(command.end(), flags.begin(), flags.end());
    const Finished made = RunToEnd(command);
    EXPECT_EQ(made.exit_code, 0) << made.errors;
    Token token;
    for (const absl::string_view line : absl::StrSplit(made.output, '\n')) {
      if (line.substr(0, 6) == "crout_") token.text = std::string(line);
      if (line.substr(0, 7) == "token =") token.line = absl::StrCat(line, "\n");
    }
    return token;
  }

  // Calls the daemon on a new connection, with the certificate `name` or without one.
  grpc::Status Call(const std::string& address, const std::string& token,
                    const std::string& name = "") const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ReadFile(files_.File("ca.crt"));
    if (!name.empty()) {
      options.pem_cert_chain = ReadFile(files_.File(name + ".crt"));
      options.pem_private_key = ReadFile(files_.File(name + ".key"));
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1::FactorizationService::NewStub(
        grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kTestTimeout));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::GetServerInfoResponse info;
    return stub->GetServerInfo(&context, {}, &info);
  }

  const TempDir files_;
};

TEST_F(IdentityTest, TokensAndCertificatesIdentifyTheCaller) {
  const Token token = MakeToken();
  MakeCertificate(files_, "spiffe", "ca", 2, "URI:spiffe://example.org/bob,DNS:alice.example.org");
  MakeCertificate(files_, "dns", "ca", 2, "DNS:carol.example.org");
  MakeCertificate(files_, "stranger", "ca", 2, "DNS:mallory.example.org");
  WriteIdentities(absl::StrCat(
      "[alice]\ncertificate = alice.example.org\ntenants = a\nroles = factor\n", token.line,
      "[bob]\ncertificate = spiffe://example.org/bob\ntenants = b\nroles = solve\n",
      "[carol]\ncertificate = Carol.example.org\ntenants = c\nroles = solve\n"));
  std::vector<std::string> flags = Flags();
  flags.emplace_back("--log-calls=all");
  Daemon daemon(flags);
  EXPECT_TRUE(Call(daemon.address(), token.text).ok());
  EXPECT_TRUE(Call(daemon.address(), "", "spiffe").ok());
  EXPECT_TRUE(Call(daemon.address(), "", "dns").ok());
  EXPECT_TRUE(Call(daemon.address(), token.text, "stranger").ok()) << "the token says who it is";
  const auto refused = [&](const grpc::Status& status, const std::string& message) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  };
  refused(Call(daemon.address(), ""), "send a token");
  refused(Call(daemon.address(), token.text + "x"), "the token is unknown");
  refused(Call(daemon.address(), "", "stranger"), "mallory.example.org");
  refused(Call(daemon.address(), token.text + "x", "dns"), "the token is unknown");
  EXPECT_TRUE(daemon.Logs({"identity=\"alice\"", "identity=\"bob\"", "identity=\"carol\"",
                           "caller_refused", "unknown_certificate"}))
      << daemon.process().Errors();
  EXPECT_THAT(daemon.process().Errors(), Not(HasSubstr(token.text)));
}

TEST_F(IdentityTest, ClientsSendTheirTokens) {
  const std::string path = files_.File("alice.token");
  const Token token = MakeToken({"--token-file=" + path});
  WriteIdentities("[alice]\ntenants = a\nroles = solve\n" + token.line);
  Daemon daemon({Flag("identities", "identities")});
  const auto info = [&](const std::string& server, const std::string& text,
                        const std::string& file) {
    ClientOptions options;
    options.server = server;
    options.token = text;
    options.token_file = file;
    options.retry.max_attempts = 1;
    const auto client = Client::Connect(options);
    return client.ok() ? (*client)->ServerInfo().status() : client.status();
  };
  EXPECT_TRUE(info(daemon.address(), "", path).ok()) << info(daemon.address(), "", path);
  const absl::Status unknown = info(daemon.address(), "guess", "");
  EXPECT_TRUE(absl::IsUnauthenticated(unknown)) << unknown;
  EXPECT_EQ(Reason(unknown), "UNKNOWN_TOKEN");
  EXPECT_THAT(std::string(info("192.0.2.1:1", "guess", "").message()), HasSubstr("give TLS too"));
  EXPECT_THAT(std::string(info(daemon.address(), "guess", path).message()),
              HasSubstr("one of them"));
  EXPECT_THAT(std::string(info(daemon.address(), "my secret", "").message()),
              AllOf(HasSubstr("without spaces"), Not(HasSubstr("secret"))));

  const auto ctl = [&](std::vector<std::string> arguments) { return daemon.Ctl(arguments); };
  const std::string flag = "--token-file=" + path;
  const std::string patient = "--timeout=1m";
  EXPECT_EQ(ctl({"status", flag, patient}).exit_code, 0) << ctl({"status", flag}).errors;
  const Finished nobody = ctl({"status", patient});
  EXPECT_EQ(nobody.exit_code, 20);
  EXPECT_THAT(nobody.errors, AllOf(HasSubstr("UNAUTHENTICATED"), HasSubstr("--token-file")));
  const std::string handle(26, 'y');
  const Finished denied = ctl({"release", handle, flag});
  EXPECT_EQ(denied.exit_code, 21) << denied.errors;
  EXPECT_THAT(denied.errors, HasSubstr("the role factor"));
  EXPECT_EQ(ctl({"list", flag, "--tenant=b"}).exit_code, 21);
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_THAT(ctl({"status", flag}).errors, HasSubstr("chmod 600"));
}

TEST_F(IdentityTest, WithdrawnAndExpiredTokensAreRefused) {
  const Token token = MakeToken();
  const Token brief = MakeToken({"--valid-for=1ns"});
  EXPECT_THAT(brief.line, HasSubstr(" until 20"));
  const std::string rest = "[alice]\ntenants = a\nroles = solve\n";
  WriteIdentities(rest + token.line + brief.line);
  Daemon daemon(Flags());
  EXPECT_THAT(Call(daemon.address(), brief.text).error_message(),
              HasSubstr("the token has expired"));
  ASSERT_TRUE(Call(daemon.address(), token.text).ok());
  WriteIdentities(rest + "roles = half-writ");
  EXPECT_TRUE(Eventually(
      [&] { return daemon.process().Errors().find("identities_refused") != std::string::npos; }));
  EXPECT_TRUE(Call(daemon.address(), token.text).ok()) << "the last good ones";
  EXPECT_TRUE(Eventually([&] {
    return daemon.ScrapeMetrics().find("crout_file_refused{file=\"identities\"} 1\n") !=
           std::string::npos;
  }));
  WriteIdentities(rest);
  EXPECT_TRUE(Eventually([&] { return !Call(daemon.address(), token.text).ok(); }));
}

TEST_F(IdentityTest, AWithdrawnTokenEndsACallInProgress) {
  const Token token = MakeToken();
  const std::string rest = "[alice]\ntenants = a\nroles = factor\n";
  WriteIdentities(rest + token.line);
  // The time limits of uploads are disabled, so that only the withdrawal can end this upload.
  Daemon daemon({Flag("identities", "identities"), "--upload-idle-timeout=0", "--upload-min-rate=0",
                 "--upload-max-time=0"});
  const auto stub = daemon.NewStub();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kTestTimeout));
  context.AddMetadata("authorization", "Bearer " + token.text);
  const auto stream = stub->Factorize(&context);
  v1::FactorizeRequest request;
  *request.mutable_header()->mutable_matrix() = DenseSpecOf(64, 64);
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(Eventually([&] {
    return daemon.ScrapeMetrics().find("crout_uploads_in_flight 1\n") != std::string::npos;
  }));
  WriteIdentities(rest);
  v1::FactorizeResponse response;
  while (stream->Read(&response)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("withdrawn"));
}

TEST_F(IdentityTest, ChangesAreAudited) {
  const std::string path = files_.File("alice.token");
  const Token token = MakeToken({"--token-file=" + path});
  WriteIdentities("[alice]\ntenants = a\nroles = factor\n" + token.line);
  Daemon daemon({Flag("identities", "identities"), "--log-calls=none", "--log-format=json"});
  const std::string flag = "--token-file=" + path;
  WriteFile(files_.File("a.txt"), "4 1\n1 3\n");
  const Finished made = daemon.Ctl({"factor", files_.File("a.txt"), "--json", flag});
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  const std::string handle = nlohmann::json::parse(made.output)["handle"];
  daemon.AwaitRest();  // keeps the order of the log: a call is logged after its reply
  EXPECT_EQ(daemon.Ctl({"solve", handle, "--ones", flag}).exit_code, 0);
  EXPECT_EQ(daemon.Ctl({"release", handle, flag}).exit_code, 0);
  daemon.AwaitRest();
  EXPECT_EQ(daemon.Ctl({"release", handle, flag}).exit_code, 11);
  daemon.AwaitRest();
  daemon.process().Signal(SIGTERM);
  ASSERT_EQ(daemon.process().Wait(), 0);

  std::vector<nlohmann::json> audit;
  for (const absl::string_view line : absl::StrSplit(daemon.process().Errors(), '\n')) {
    const auto fields = nlohmann::json::parse(std::string(line), nullptr, false);
    if (fields.is_object() && fields.value("event", "") == "audit") audit.push_back(fields);
  }
  ASSERT_EQ(audit.size(), 4u) << daemon.process().Errors();
  EXPECT_EQ(audit[0]["method"], "Factorize");
  EXPECT_EQ(audit[0]["identity"], "alice");
  EXPECT_EQ(audit[0]["tenant"], "a");
  EXPECT_EQ(audit[0]["code"], "OK");
  EXPECT_EQ(audit[0]["handle_prefix"], handle.substr(0, 6));
  EXPECT_GT(audit[0]["received_bytes"], 0);
  EXPECT_GE(audit[0]["factor_bytes"], 4 * 8);
  EXPECT_EQ(audit[1]["method"], "ReleaseFactor");
  EXPECT_EQ(audit[1]["code"], "OK");
  EXPECT_EQ(audit[2]["code"], "NOT_FOUND");
  EXPECT_EQ(audit[2]["reason"], "HANDLE_RELEASED");
  EXPECT_EQ(audit[3]["method"], "drain");
  EXPECT_EQ(audit[3]["pid"], getpid());
  EXPECT_THAT(daemon.process().Errors(), Not(HasSubstr(handle)));
}

TEST_F(IdentityTest, TokensCanBeWrittenToAFile) {
  const std::string path = files_.File("alice.token");
  const Token kept = MakeToken({"--token-file=" + path});
  EXPECT_EQ(kept.text, "") << "nothing shows it";
  EXPECT_THAT(ReadFile(path), HasSubstr("crout_"));
  struct stat state = {};
  ASSERT_EQ(stat(path.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0600u);
  const Finished again = RunToEnd(
      {ProgramPath("croutd"), "token", "create", "--identity=alice", "--token-file=" + path});
  EXPECT_EQ(again.exit_code, 1) << "a token that is there stays";
  EXPECT_THAT(again.errors, HasSubstr("File exists"));
  EXPECT_EQ(RunToEnd({ProgramPath("croutd"), "token", "create"}).exit_code, 2);
  EXPECT_EQ(RunToEnd({ProgramPath("croutd"), "token"}).exit_code, 2);
}

TEST_F(IdentityTest, PagesTakeRoles) {
  const Token admin = MakeToken();
  const Token scraper = MakeToken();
  const Token solver = MakeToken();
  WriteIdentities("[admin]\ntenants = *\nroles = admin\n" + admin.line +
                  "[scraper]\nroles = metrics\n" + scraper.line +
                  "[solver]\ntenants = a\nroles = solve\n" + solver.line);
  Daemon daemon({Flag("identities", "identities"), "--metrics-access=roles"});
  // Returns the status line of a reply and its WWW-Authenticate header.
  const auto get = [&](const std::string& path, const std::string& token) {
    testing::HttpPeer peer(daemon.metrics_address());
    peer.Send("GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" +
              (token.empty() ? "" : "Authorization: Bearer " + token + "\r\n") + "\r\n");
    return peer.ReadToEnd();
  };
  const std::string none = get("/metrics", "");
  EXPECT_THAT(none, AllOf(HasSubstr("HTTP/1.1 401"), HasSubstr("WWW-Authenticate: Bearer")));
  EXPECT_THAT(none, Not(HasSubstr("crout_")));
  const absl::Time begin = absl::Now();
  EXPECT_THAT(get("/metrics", "guess"), HasSubstr("HTTP/1.1 401"));
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(950)) << "trying tokens is slow";
  EXPECT_TRUE(daemon.Logs({"caller_refused", "127.0.0.1:", "/metrics", "unknown_token"}))
      << daemon.process().Errors();
  EXPECT_THAT(get("/metrics", solver.text), HasSubstr("HTTP/1.1 403"));
  EXPECT_THAT(get("/metrics", scraper.text),
              AllOf(HasSubstr("HTTP/1.1 200"),
                    HasSubstr("crout_callers_refused_total{reason=\"unknown_token\"} 1")));
  EXPECT_THAT(get("/", scraper.text), HasSubstr("HTTP/1.1 403"));
  EXPECT_THAT(get("/", admin.text), HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(get("/healthz", ""), HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(get("/readyz", ""), HasSubstr("HTTP/1.1 200"));
}

TEST_F(IdentityTest, SecretsStayOutOfCoreFiles) {
  WriteIdentities("[alice]\nroles = metrics\n" + MakeToken().line);
  // Returns whether a daemon with these flags leaves a core file in its working directory when it
  // is aborted.
  const auto leaves_core = [](const std::vector<std::string>& flags) {
    const TempDir place;
    std::vector<std::string> command = {"/bin/bash",
                                        "-c",
                                        R"(cd "$0" && ulimit -c 100 && exec "$@")",
                                        place.File(""),
                                        ProgramPath("croutd"),
                                        "--listen=127.0.0.1:0",
                                        "--metrics-listen=127.0.0.1:0",
                                        "--devices=host"};
    command.insert(command.end(), flags.begin(), flags.end());
    Process daemon(command);
    EXPECT_TRUE(Eventually([&] { return daemon.Output().find('\n') != std::string::npos; }))
        << daemon.Errors();
    daemon.Signal(SIGABRT);
    EXPECT_EQ(daemon.Wait(), 128 + SIGABRT);
    return !std::filesystem::is_empty(place.File(""));
  };
  if (!leaves_core({})) GTEST_SKIP() << "this system writes no core files there";
  EXPECT_FALSE(leaves_core({Flag("identities", "identities")}));
  EXPECT_FALSE(leaves_core({Flag("tls-cert", "server.crt"), Flag("tls-key", "server.key")}));
}

TEST_F(IdentityTest, InvalidIdentityFilesAreRefusedAtTheStart) {
  const auto refusal = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {ProgramPath("croutd"), "--check-config"});
    const Finished finished = RunToEnd(flags);
    return finished.exit_code == 2 ? finished.errors : "taken";
  };
  WriteIdentities("[alice]\nroles = king\n");
  EXPECT_THAT(refusal({Flag("identities", "identities")}),
              HasSubstr("line 2: 'king' is not a role"));
  WriteIdentities("[alice]\nroles = metrics\n");
  EXPECT_EQ(refusal({Flag("identities", "identities")}), "taken");
  EXPECT_THAT(refusal({Flag("identities", "identities"), "--insecure"}),
              HasSubstr("exclude each other"));
  for (const char* const access :
       {"--health=roles", "--reflection=roles", "--metrics-access=roles"}) {
    EXPECT_THAT(refusal({access}), HasSubstr(absl::StrCat(access, " needs --identities")));
  }
  EXPECT_THAT(refusal({Flag("identities", "identities"), "--metrics-access=roles",
                       "--metrics-listen=0.0.0.0:0"}),
              HasSubstr("loopback"));
  ASSERT_EQ(chmod(files_.File("identities").c_str(), 0644), 0);
  EXPECT_THAT(refusal({Flag("identities", "identities")}), HasSubstr("chmod 600"));
}

}  // namespace
}  // namespace crout::e2e::identity_test
