// SPDX-License-Identifier: Apache-2.0

// Tests all ways in which authentication can fail, and the resulting errors in the C++ client,
// libcrout and croutctl.
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "crout/client.h"
#include "crout/crout.h"
#include "crout/status.h"
#include "server/auth/token.h"
#include "tests/e2e/harness/certificates.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/harness/process.h"
#include "tests/support/peers/token_authority.h"

namespace crout::e2e::callers_test {
namespace {

using ::crout::testing::SignByHmac;
using ::crout::testing::TokenAuthority;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

enum class Server { kTls, kMutualTls, kPlain };

// The credentials of a caller, and the expected result. Names of files are given without ".crt".
struct Case {
  const char* name;
  Server server;
  bool tls;
  const char* ca;
  const char* certificate;  // "": no certificate
  const char* server_name;  // "": host of the address
  std::string token;        // "": no token
  absl::StatusCode code;
  const char* message;  // part of the expected message
};

class CallersTest : public ::testing::Test {
 protected:
  CallersTest() {
    MakeAuthority(files_, "ca");
    MakeAuthority(files_, "other");
    MakeCertificate(files_, "server", "ca");
    MakeCertificate(files_, "client", "ca", 2, "DNS:alice.example.org");
    MakeCertificate(files_, "late", "ca", -1, "DNS:alice.example.org");
    MakeCertificate(files_, "stranger", "other", 2, "DNS:alice.example.org");
    Replace("keys", authority_.Jwks());
    WriteIdentities(subject_ + token_line_);
  }

  std::string Flag(const std::string& name, const std::string& file) const {
    return "--" + name + "=" + files_.File(file);
  }
  // Replaces the file by renaming another, as operators should.
  void Replace(const std::string& name, const std::string& text) const {
    const std::string next = files_.File(name + ".next");
    WriteFile(next, text);
    ASSERT_EQ(chmod(next.c_str(), 0600), 0);
    ASSERT_EQ(std::rename(next.c_str(), files_.File(name).c_str()), 0);
  }
  void WriteIdentities(const std::string& alice) const {
    Replace("identities",
            "[alice]\ncertificate = alice.example.org\ntenants = a\nroles = solve\n" + alice);
  }
  std::vector<std::string> Flags(Server server) const {
    std::vector<std::string> flags = {Flag("identities", "identities"), Flag("token-keys", "keys"),
                                      "--token-issuer=sso", "--token-audience=crout"};
    if (server == Server::kPlain) return flags;
    flags.insert(flags.end(), {Flag("tls-cert", "server.crt"), Flag("tls-key", "server.key"),
                               Flag("tls-client-ca", "ca.crt"),
                               server == Server::kMutualTls ? "--tls-client-certs=required"
                                                            : "--tls-client-certs=optional"});
    return flags;
  }

  static std::string Claims(const std::string& audience, absl::Duration left,
                            const std::string& subject = "alice@sso") {
    return absl::StrCat(R"({"iss":"sso","aud":")", audience, R"(","sub":")", subject, R"(","exp":)",
                        absl::ToUnixSeconds(absl::Now() + left), "}");
  }
  std::string Signed(const std::string& audience, absl::Duration left) const {
    return authority_.Sign(Claims(audience, left));
  }

  ClientOptions OptionsOf(const std::string& address, const Case& c) const {
    ClientOptions options;
    options.server = address;
    options.retry.max_attempts = 1;
    options.token = c.token;
    if (c.tls) {
      options.tls = TlsOptions{files_.File(absl::StrCat(c.ca, ".crt")), "", "", c.server_name};
      if (*c.certificate != 0) {
        options.tls->cert_file = files_.File(absl::StrCat(c.certificate, ".crt"));
        options.tls->key_file = files_.File(absl::StrCat(c.certificate, ".key"));
      }
    }
    return options;
  }
  absl::Status CallByLibrary(const std::string& address, const Case& c) const {
    const auto client = Client::Connect(OptionsOf(address, c));
    return client.ok() ? (*client)->ServerInfo().status() : client.status();
  }
  Finished CallByCtl(const std::string& address, const Case& c) const {
    std::vector<std::string> command = {ProgramPath("croutctl"), "--server=" + address, "list"};
    if (c.tls) command.insert(command.end(), {"--tls", Flag("ca", absl::StrCat(c.ca, ".crt"))});
    if (*c.certificate != 0) {
      command.push_back(Flag("cert", absl::StrCat(c.certificate, ".crt")));
      command.push_back(Flag("key", absl::StrCat(c.certificate, ".key")));
    }
    if (!c.token.empty()) {
      Replace("token", c.token);
      command.push_back(Flag("token-file", "token"));
    }
    return RunToEnd(command);
  }
  // Factors with libcrout, which the roles of alice do not permit. Returns the error code.
  int64_t CallByC(const std::string& address, const Case& c) const {
    const auto path = [&](const std::string& name, const char* suffix) {
      return name.empty() ? "" : files_.File(name + suffix);
    };
    const std::string ca = path(c.tls ? c.ca : "", ".crt");
    const std::string certificate = path(c.certificate, ".crt");
    const std::string key = path(c.certificate, ".key");
    const std::string token = path(c.token.empty() ? "" : "token", "");
    if (!token.empty()) Replace("token", c.token);
    crout_options options = {};
    options.struct_size = sizeof options;
    options.server = address.c_str();
    options.timeout = absl::ToDoubleSeconds(kTestTimeout);
    options.ca_file = ca.c_str();
    options.cert_file = certificate.c_str();
    options.key_file = key.c_str();
    options.server_name = c.server_name;
    options.token_file = token.c_str();
    crout_connection* connection = nullptr;
    if (const int code = crout_connect_with(&options, &connection); code != CROUT_OK) return code;
    const double a = 2;
    crout_factor* factor = nullptr;
    const int64_t code = crout_dgetrf(connection, 1, &a, 1, &factor);
    crout_release(factor);
    crout_disconnect(connection);
    return code;
  }
  static int64_t CodeFor(absl::StatusCode code) {
    if (code == absl::StatusCode::kUnavailable) return CROUT_UNREACHABLE;
    return code == absl::StatusCode::kOk ? CROUT_PERMISSION_DENIED : CROUT_UNAUTHENTICATED;
  }
  // Returns the command of an openssl server with the certificate `name`.
  std::vector<std::string> OtherServer(const std::string& name,
                                       const std::vector<std::string>& options) const {
    std::vector<std::string> command = {"/usr/bin/openssl",
                                        "s_server",
                                        "-accept",
                                        "127.0.0.1:0",
                                        "-www",
                                        "-cert",
                                        files_.File(name + ".crt"),
                                        "-key",
                                        files_.File(name + ".key")};
    command.insert(command.end(), options.begin(), options.end());
    return command;
  }
  static std::string AddressOf(Process& other_server) {
    const std::string line = "ACCEPT 127.0.0.1:";
    EXPECT_TRUE(Eventually([&] {
      const size_t begin = other_server.Output().find(line);
      return begin != std::string::npos &&
             other_server.Output().find('\n', begin) != std::string::npos;
    }));
    const std::string output = other_server.Output();
    const size_t begin = output.find(line) + line.find("127");
    return output.substr(begin, output.find('\n', begin) - begin);
  }
  void ExpectNoConnection(const std::string& address, const char* message) const {
    const Case c = {"",     Server::kTls, true, "ca", "", "", "", absl::StatusCode::kUnavailable,
                    message};
    const absl::Status heard = CallByLibrary(address, c);
    EXPECT_TRUE(absl::IsUnavailable(heard)) << heard;
    EXPECT_THAT(std::string(heard.message()), HasSubstr(c.message));
    EXPECT_EQ(CallByC(address, c), CROUT_UNREACHABLE);
    EXPECT_THAT(crout_last_error(), HasSubstr(c.message));
    const Finished ctl = CallByCtl(address, c);
    EXPECT_EQ(ctl.exit_code, 3);
    EXPECT_THAT(ctl.errors, AllOf(StartsWith("croutctl: UNREACHABLE: "), HasSubstr(c.message)));
  }
  void Try(const Daemon& daemon, const Case& c) const {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(CallByC(daemon.address(), c), CodeFor(c.code)) << crout_last_error();
    EXPECT_THAT(crout_last_error(), HasSubstr(*c.message == 0 ? "the role factor" : c.message));
    const absl::Status heard = CallByLibrary(daemon.address(), c);
    EXPECT_EQ(heard.code(), c.code) << heard;
    EXPECT_THAT(std::string(heard.message()), HasSubstr(c.message));
    if (*c.server_name != 0) return;  // croutctl always verifies the host of its address
    const Finished ctl = CallByCtl(daemon.address(), c);
    EXPECT_EQ(ctl.exit_code == 0, heard.ok()) << ctl.errors;
    EXPECT_EQ(ctl.exit_code == 20, absl::IsUnauthenticated(heard)) << ctl.errors;
    EXPECT_THAT(ctl.errors, HasSubstr(c.message));
  }

  const TempDir files_;
  const TokenAuthority authority_{"one"};
  const std::string token_ = MakeToken().value();
  const std::string token_line_ =
      absl::StrCat("token = ", FormatTokenHash(HashToken(token_)), "\n");
  const std::string subject_ = "subject = alice@sso\n";
};

TEST_F(CallersTest, EachCallerGetsTheReasonOfItsRefusal) {
  constexpr auto kOk = absl::StatusCode::kOk;
  constexpr auto kNobody = absl::StatusCode::kUnauthenticated;
  constexpr auto kNoConnection = absl::StatusCode::kUnavailable;
  // Parts of messages about a rejected certificate of the client, and of the server.
  constexpr char kShow[] = "client certificate";
  constexpr char kWhose[] = "the server's certificate";
  const std::string good = Signed("crout", absl::Hours(1));
  const std::string late = Signed("crout", -absl::Hours(1));
  const std::string foreign = Signed("other", absl::Hours(1));
  const std::string claims = Claims("crout", absl::Hours(1));
  const std::string other_key = TokenAuthority("one").Sign(claims);
  const std::string hmac = SignByHmac(R"({"alg":"HS256","kid":"one"})", claims, authority_.Pem());
  const std::string nobody = authority_.Sign(Claims("crout", absl::Hours(1), "mallory@sso"));
  const Case cases[] = {
      {"plain", Server::kPlain, false, "", "", "", "", kNobody, "send a token"},
      {"plain, token", Server::kPlain, false, "", "", "", token_, kOk, ""},
      {"plain, signed token", Server::kPlain, false, "", "", "", good, kOk, ""},
      {"TLS", Server::kTls, true, "ca", "", "", "", kNobody, "send a token"},
      {"token", Server::kTls, true, "ca", "", "", token_, kOk, ""},
      {"signed token", Server::kTls, true, "ca", "", "", good, kOk, ""},
      {"expired token", Server::kTls, true, "ca", "", "", late, kNobody, "the token has expired"},
      {"wrong audience", Server::kTls, true, "ca", "", "", foreign, kNobody,
       "another issuer or audience"},
      {"wrong key", Server::kTls, true, "ca", "", "", other_key, kNobody, "the token is unknown"},
      {"HS256 with the public key", Server::kTls, true, "ca", "", "", hmac, kNobody,
       "the token is unknown"},
      {"unknown subject", Server::kTls, true, "ca", "", "", nobody, kNobody, "subject = NAME"},
      {"certificate", Server::kTls, true, "ca", "client", "", "", kOk, ""},
      {"mutual TLS", Server::kMutualTls, true, "ca", "client", "", "", kOk, ""},
      {"mutual TLS without", Server::kMutualTls, true, "ca", "", "", token_, kNoConnection, kShow},
      {"expired certificate", Server::kTls, true, "ca", "late", "", token_, kNoConnection, kShow},
      {"stranger's certificate", Server::kTls, true, "ca", "stranger", "", "", kNoConnection,
       kShow},
      {"unknown authority", Server::kTls, true, "other", "", "", token_, kNoConnection, kWhose},
      {"wrong name", Server::kTls, true, "ca", "", "elsewhere.example", token_, kNoConnection,
       kWhose},
      {"plain to a TLS port", Server::kTls, false, "", "", "", token_, kNoConnection, "give TLS"},
      {"TLS to a plain port", Server::kPlain, true, "ca", "", "", token_, kNoConnection,
       "speaks no TLS"},
  };
  for (const Server server : {Server::kPlain, Server::kTls, Server::kMutualTls}) {
    const Daemon daemon(Flags(server));
    for (const Case& c : cases) {
      if (c.server == server) Try(daemon, c);
    }
  }
}

TEST_F(CallersTest, ClientsRefuseTlsBefore12) {
  Process old(OtherServer("server", {"-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"}));
  ExpectNoConnection(AddressOf(old), "no TLS 1.2");
}

// croutd does not start with an expired certificate, but a certificate may expire while it runs.
TEST_F(CallersTest, ClientsRefuseExpiredServerCertificates) {
  MakeCertificate(files_, "ended", "ca", -1);
  Process late(OtherServer("ended", {"-alpn", "h2"}));
  ExpectNoConnection(AddressOf(late), "it has expired");
}

TEST_F(CallersTest, AFileNamesServers) {
  const Daemon daemon(Flags(Server::kMutualTls));
  const std::string file = files_.File("servers.toml");
  Replace("alice.token", token_);
  const std::string lab = absl::StrCat("[lab]\naddress = \"", daemon.address(),
                                       "\"\nca = \"ca.crt\"\ncert = \"client.crt\"\n"
                                       "key = \"client.key\"\ntoken_file = \"alice.token\"\n");
  const auto list = [&](const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {"/usr/bin/env", "CROUT_SERVERS=" + file,
                                        ProgramPath("croutctl"), "--server=lab", "list"};
    command.insert(command.end(), more.begin(), more.end());
    return RunToEnd(command);
  };
  const Finished missing = list();
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.errors, HasSubstr("no file " + file));
  Replace("servers.toml", lab);
  EXPECT_EQ(list().exit_code, 0) << list().errors;
  EXPECT_EQ(list({"--tenant=b"}).exit_code, 21) << "a flag goes before the file";
  const std::string other = Flag("ca", "other.crt");
  EXPECT_THAT(list({other}).errors, HasSubstr("the server's certificate"));
  Replace("servers.toml", lab + "server_name = \"elsewhere.example\"\n");
  EXPECT_EQ(list().exit_code, 3);
  EXPECT_THAT(list().errors, HasSubstr("the server's certificate is not for this name"));
  Replace("servers.toml", lab);
  ASSERT_EQ(chmod(files_.File("alice.token").c_str(), 0644), 0);
  EXPECT_THAT(list().errors, HasSubstr("chmod 600"));
  Replace("alice.token", token_);
  Replace("servers.toml", lab + "token = \"x\"\n");
  EXPECT_THAT(list().errors, HasSubstr("line 7"));
  Replace("servers.toml", lab);
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  EXPECT_THAT(list().errors, HasSubstr("chmod 600"));

  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  setenv("CROUT_SERVERS", file.c_str(), 1);
  crout_connection* connection = nullptr;
  ASSERT_EQ(crout_connect("lab", nullptr, 60, &connection), CROUT_OK) << crout_last_error();
  crout_factor* factor = nullptr;
  const double a = 2;
  EXPECT_EQ(crout_dgetrf(connection, 1, &a, 1, &factor), CROUT_PERMISSION_DENIED)
      << "as alice, who may only solve";
  crout_disconnect(connection);
  unsetenv("CROUT_SERVERS");
}

TEST_F(CallersTest, RevokedCredentialsAreRefused) {
  const Daemon daemon(Flags(Server::kTls));
  const std::string signed_token = Signed("crout", absl::Hours(1));
  const auto code = [&](const std::string& token) {
    return CallByLibrary(daemon.address(), {"", Server::kTls, true, "ca", "", "", token, {}, ""})
        .code();
  };
  ASSERT_EQ(code(token_), absl::StatusCode::kOk);
  ASSERT_EQ(code(signed_token), absl::StatusCode::kOk);
  WriteIdentities(subject_);
  EXPECT_TRUE(Eventually([&] { return code(token_) == absl::StatusCode::kUnauthenticated; }));
  const Case withdrawn = {"", Server::kTls, true, "ca", "", "", token_, {}, "it was withdrawn"};
  const Finished ctl = CallByCtl(daemon.address(), withdrawn);
  EXPECT_EQ(ctl.exit_code, 20);
  EXPECT_THAT(ctl.errors, HasSubstr(withdrawn.message));
  EXPECT_EQ(CallByC(daemon.address(), withdrawn), CROUT_UNAUTHENTICATED);
  EXPECT_THAT(crout_last_error(), HasSubstr(withdrawn.message));
  EXPECT_EQ(code(signed_token), absl::StatusCode::kOk);
  const TokenAuthority next("two");
  Replace("keys", next.Jwks());
  EXPECT_TRUE(Eventually([&] { return code(signed_token) == absl::StatusCode::kUnauthenticated; }));
  EXPECT_EQ(code(next.Sign(Claims("crout", absl::Hours(1)))), absl::StatusCode::kOk);
}

TEST_F(CallersTest, ACertificateWithoutItsLineIsRefused) {
  const Daemon daemon(Flags(Server::kMutualTls));
  const Case shown = {"",
                      Server::kMutualTls,
                      true,
                      "ca",
                      "client",
                      "",
                      "",
                      absl::StatusCode::kUnauthenticated,
                      "no identity has a name of the client's certificate (alice.example.org)"};
  const auto open = Client::Connect(OptionsOf(daemon.address(), shown));
  ASSERT_TRUE(open.ok()) << open.status();
  ASSERT_TRUE((*open)->ServerInfo().ok());
  Replace("identities", "[alice]\ntenants = a\nroles = solve\n");
  EXPECT_TRUE(Eventually([&] { return !(*open)->ServerInfo().ok(); }))
      << "a connection that is there";
  EXPECT_THAT(std::string((*open)->ServerInfo().status().message()), HasSubstr(shown.message));
  Try(daemon, shown);
}

TEST_F(CallersTest, UnixSocketsHaveAModeAndAnIdentity) {
  const std::string path = files_.File("croutd.sock");
  std::vector<std::string> flags = Flags(Server::kPlain);
  flags.insert(flags.end(), {"--listen=unix:" + path, "--unix-mode=620",
                             absl::StrCat("--unix-group=", getgrgid(getegid())->gr_name)});
  const Daemon daemon(flags);
  struct stat state = {};
  ASSERT_EQ(stat(path.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0620u);
  const auto heard = [&](const std::string& token) {
    return CallByLibrary("unix:" + path, {"", Server::kPlain, false, "", "", "", token, {}, ""});
  };
  EXPECT_TRUE(absl::IsUnauthenticated(heard(""))) << heard("");
  EXPECT_TRUE(heard(token_).ok()) << heard(token_);
  WriteIdentities("socket = unix\n");
  EXPECT_TRUE(Eventually([&] { return heard("").ok(); }));
  EXPECT_TRUE(absl::IsUnauthenticated(heard(token_))) << "a token says alone who it is";
}

TEST_F(CallersTest, UnixSocketsAreGivenToTheirGroup) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives a file to a group that it is not in";
  setgrent();
  const group* entry = getgrent();
  while (entry != nullptr && entry->gr_gid == getegid()) entry = getgrent();
  ASSERT_NE(entry, nullptr) << "this system has one group alone";
  const gid_t other = entry->gr_gid;
  const std::string name = entry->gr_name;
  endgrent();
  const std::string path = files_.File("croutd.sock");
  for (const auto& [flags, mode] : {std::pair(std::vector<std::string>{}, 0660u),
                                    {std::vector<std::string>{"--unix-mode=620"}, 0620u}}) {
    std::vector<std::string> all = {"--listen=unix:" + path, "--unix-group=" + name};
    all.insert(all.end(), flags.begin(), flags.end());
    const Daemon daemon(all);
    struct stat state = {};
    ASSERT_EQ(stat(path.c_str(), &state), 0);
    EXPECT_EQ(state.st_gid, other) << name;
    EXPECT_EQ(state.st_uid, geteuid());
    EXPECT_EQ(state.st_mode & 0777, mode);
  }
}

TEST_F(CallersTest, InvalidSettingsAreRefused) {
  const auto refusal = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {ProgramPath("croutd"), "--check-config"});
    const Finished finished = RunToEnd(flags);
    return finished.exit_code == 2 ? finished.errors : "taken";
  };
  EXPECT_EQ(refusal(Flags(Server::kTls)), "taken");
  EXPECT_THAT(refusal({Flag("identities", "identities"), Flag("token-keys", "keys")}),
              HasSubstr("must be given together"));
  EXPECT_THAT(refusal({Flag("token-keys", "keys"), "--token-issuer=a", "--token-audience=b"}),
              HasSubstr("needs --identities"));
  EXPECT_THAT(refusal({"--unix-mode=8"}), HasSubstr("three octal digits"));
  Replace("keys", "{}");
  EXPECT_THAT(refusal(Flags(Server::kTls)), HasSubstr("an array \"keys\""));
}

}  // namespace
}  // namespace crout::e2e::callers_test
