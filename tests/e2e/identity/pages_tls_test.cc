// SPDX-License-Identifier: Apache-2.0

// Tests metrics and the status page over TLS, requested with curl.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/auth/token.h"
#include "tests/e2e/harness/certificates.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/harness/process.h"
#include "tests/server/scrape.h"
#include "tests/support/peers/token_authority.h"

namespace crout::e2e::pages_tls_test {
namespace {

using ::crout::testing::SignByHmac;
using ::crout::testing::TokenAuthority;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Exit codes of curl, as in its manual page.
constexpr int kHandshakeError = 35;
constexpr int kBadPeerCertificate = 60;
constexpr int kReceiveError = 56;

class PagesTlsTest : public ::testing::Test {
 protected:
  PagesTlsTest() {
    MakeAuthority(files_, "ca");
    MakeAuthority(files_, "other");
    MakeCertificate(files_, "server", "ca");
    MakeCertificate(files_, "client", "ca", 2, "DNS:grafana.example.org");
    MakeCertificate(files_, "stranger", "other", 2, "DNS:grafana.example.org");
    MakeCertificate(files_, "late", "ca", -1, "DNS:grafana.example.org");
    Replace("keys", authority_.Jwks());
    WriteIdentities(Line(scraper_));
  }

  std::string Flag(const std::string& name, const std::string& file) const {
    return absl::StrCat("--", name, "=", files_.File(file));
  }
  static std::string Line(const std::string& token, const std::string& end = "") {
    return absl::StrCat("token = ", FormatTokenHash(HashToken(token)),
                        end.empty() ? "" : absl::StrCat(" until ", end), "\n");
  }
  void Replace(const std::string& name, const std::string& text) const {
    const std::string next = files_.File(name + ".next");
    WriteFile(next, text);
    ASSERT_EQ(chmod(next.c_str(), 0600), 0);
    ASSERT_EQ(std::rename(next.c_str(), files_.File(name).c_str()), 0);
  }
  void WriteIdentities(const std::string& of_scraper) const {
    Replace("identities",
            absl::StrCat("[scraper]\nroles = metrics\ncertificate = grafana.example.org\n"
                         "subject = grafana\n",
                         of_scraper, Line("crout_late", "2020-01-01T00:00:00Z"),
                         "[solver]\ntenants = a\nroles = solve\n", Line("crout_solver"),
                         "[root]\ntenants = *\nroles = admin\n", Line("crout_root")));
  }
  std::vector<std::string> Tls(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--metrics-tls=on", Flag("tls-cert", "server.crt"),
                             Flag("tls-key", "server.key")});
    return more;
  }
  std::vector<std::string> RoleFlags(std::vector<std::string> more = {}) const {
    more.insert(more.end(),
                {"--metrics-access=roles", Flag("identities", "identities"),
                 Flag("token-keys", "keys"), "--token-issuer=sso", "--token-audience=crout"});
    return Tls(std::move(more));
  }
  // Runs curl. The output begins with the header of the reply.
  Finished Curl(const Daemon& daemon, std::vector<std::string> options,
                const std::string& path = "/metrics", const std::string& scheme = "https") const {
    options.insert(options.begin(),
                   {"/usr/bin/curl", "--silent", "--show-error", "--include", "--max-time", "60"});
    options.push_back(absl::StrCat(scheme, "://", daemon.metrics_address(), path));
    return RunToEnd(options);
  }
  std::vector<std::string> AuthorityOptions(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--cacert", files_.File("ca.crt")});
    return more;
  }
  std::vector<std::string> CertificateOptions(const std::string& name) const {
    return AuthorityOptions(
        {"--cert", files_.File(name + ".crt"), "--key", files_.File(name + ".key")});
  }
  std::vector<std::string> TokenOptions(const std::string& token) const {
    return AuthorityOptions({"--header", "Authorization: Bearer " + token});
  }

  const TempDir files_;
  const TokenAuthority authority_{"one"};
  const std::string scraper_ = "crout_scraper";
};

TEST_F(PagesTlsTest, ServesClientsThatTrustItsAuthority) {
  Daemon daemon(Tls());
  const Finished served = Curl(daemon, AuthorityOptions());
  EXPECT_EQ(served.exit_code, 0) << served.errors;
  EXPECT_THAT(served.output, AllOf(HasSubstr("HTTP/1.1 200"), HasSubstr("crout_build_info")));
  EXPECT_THAT(Curl(daemon, AuthorityOptions(), "/").output, HasSubstr("</html>"));
  EXPECT_THAT(Curl(daemon, AuthorityOptions(), "/readyz").output, HasSubstr("ready\n"));

  const Finished wrong = Curl(daemon, {"--cacert", files_.File("other.crt")});
  EXPECT_EQ(wrong.exit_code, kBadPeerCertificate);
  EXPECT_THAT(wrong.errors, HasSubstr("certificate"));
  const std::string port = daemon.metrics_address().substr(daemon.metrics_address().rfind(':') + 1);
  const Finished name =
      RunToEnd({"/usr/bin/curl", "--silent", "--show-error", "--cacert", files_.File("ca.crt"),
                "--resolve", absl::StrCat("elsewhere.example:", port, ":127.0.0.1"),
                absl::StrCat("https://elsewhere.example:", port, "/metrics")});
  EXPECT_EQ(name.exit_code, kBadPeerCertificate);
  EXPECT_THAT(name.errors, HasSubstr("elsewhere.example"));
  const Finished old =
      Curl(daemon, AuthorityOptions({"--tls-max", "1.1", "--ciphers", "ALL:@SECLEVEL=0"}));
  EXPECT_EQ(old.exit_code, kHandshakeError);
  EXPECT_THAT(old.errors, HasSubstr("protocol version"));
  EXPECT_EQ(Curl(daemon, AuthorityOptions({"--tls-max", "1.2"})).exit_code, 0);
}

TEST_F(PagesTlsTest, PlainRequestsAreRefusedWithTheHttpsUrl) {
  Daemon daemon(Tls());
  const Finished plain = Curl(daemon, {}, "/metrics", "http");
  EXPECT_THAT(plain.output, AllOf(HasSubstr("HTTP/1.1 400"), HasSubstr("https://")));
  EXPECT_THAT(plain.output, Not(HasSubstr("crout_build_info")));
}

TEST_F(PagesTlsTest, WithoutTheSettingThePortStaysPlain) {
  Daemon daemon({Flag("tls-cert", "server.crt"), Flag("tls-key", "server.key")});
  EXPECT_THAT(Curl(daemon, {}, "/metrics", "http").output, HasSubstr("HTTP/1.1 200"));
  EXPECT_EQ(Curl(daemon, AuthorityOptions()).exit_code, kHandshakeError);
}

TEST_F(PagesTlsTest, TokensIdentifyTheCaller) {
  const std::string now = absl::FormatTime("%s", absl::Now(), absl::UTCTimeZone());
  const std::string later =
      absl::FormatTime("%s", absl::Now() + absl::Hours(1), absl::UTCTimeZone());
  const auto claims = [&](const std::string& audience, const std::string& end) {
    return absl::StrCat(R"({"iss":"sso","sub":"grafana","aud":")", audience, R"(","exp":)", end,
                        "}");
  };
  Daemon daemon(RoleFlags());
  const struct {
    const char* what;
    std::string token;
    int status;
    const char* message;
  } cases[] = {
      {"token", scraper_, 200, "crout_build_info"},
      {"signed token", authority_.Sign(claims("crout", later)), 200, "crout_build_info"},
      {"no token", "", 401, "send a token"},
      {"unknown token", "crout_guess", 401, "ask the operator for a new token"},
      {"expired token", "crout_late", 401, "the token has expired: ask the operator"},
      {"expired signed token", authority_.Sign(claims("crout", "1000000000")), 401,
       "the token has expired"},
      {"wrong audience", authority_.Sign(claims("other", later)), 401,
       "request a token for this server"},
      {"wrong key", TokenAuthority("one").Sign(claims("crout", later)), 401, "ask the operator"},
      {"wrong method",
       SignByHmac(R"({"alg":"HS256","kid":"one"})", claims("crout", later), authority_.Pem()), 401,
       "ask the operator"},
      {"other role", "crout_solver", 403,
       "the page needs the role metrics; ask the operator to add it"},
      {"admin", "crout_root", 200, "crout_build_info"},
  };
  for (const auto& [what, token, status, message] : cases) {
    const Finished got = Curl(daemon, token.empty() ? AuthorityOptions() : TokenOptions(token));
    EXPECT_THAT(got.output, HasSubstr(absl::StrCat("HTTP/1.1 ", status))) << what;
    EXPECT_THAT(got.output, HasSubstr(message)) << what;
    if (!token.empty()) {
      EXPECT_THAT(got.output, Not(HasSubstr(token))) << what;
    }
  }
  EXPECT_THAT(Curl(daemon, TokenOptions(scraper_), "/").output,
              AllOf(HasSubstr("HTTP/1.1 403"), HasSubstr("the role admin")));
  EXPECT_THAT(Curl(daemon, AuthorityOptions(), "/readyz").output, HasSubstr("HTTP/1.1 200"));

  WriteIdentities("");
  EXPECT_TRUE(Eventually([&] {
    return Curl(daemon, TokenOptions(scraper_)).output.find("HTTP/1.1 401") != std::string::npos;
  })) << "revoked";
}

TEST_F(PagesTlsTest, CertificatesIdentifyTheCaller) {
  for (const bool required : {true, false}) {
    Daemon daemon(
        RoleFlags({Flag("tls-client-ca", "ca.crt"),
                   required ? "--tls-client-certs=required" : "--tls-client-certs=optional"}));
    const Finished served = Curl(daemon, CertificateOptions("client"));
    EXPECT_THAT(served.output, AllOf(HasSubstr("HTTP/1.1 200"), HasSubstr("crout_build_info")))
        << served.errors;
    const Finished none = Curl(daemon, AuthorityOptions());
    if (required) {
      EXPECT_EQ(none.exit_code, kReceiveError);
      EXPECT_THAT(none.errors, HasSubstr("certificate required"));
    } else {
      EXPECT_THAT(none.output, HasSubstr("HTTP/1.1 401"));
    }
    const Finished stranger = Curl(daemon, CertificateOptions("stranger"));
    EXPECT_EQ(stranger.exit_code, kReceiveError);
    EXPECT_THAT(stranger.errors, HasSubstr("unknown ca"));
    const Finished late = Curl(daemon, CertificateOptions("late"));
    EXPECT_EQ(late.exit_code, kReceiveError);
    EXPECT_THAT(late.errors, HasSubstr("certificate expired"));
  }
}

TEST_F(PagesTlsTest, ACertificateWithoutItsLineIsRefused) {
  Daemon daemon(RoleFlags({Flag("tls-client-ca", "ca.crt"), "--tls-client-certs=optional"}));
  ASSERT_THAT(Curl(daemon, CertificateOptions("client")).output, HasSubstr("HTTP/1.1 200"));
  Replace("identities", "[scraper]\nroles = metrics\n" + Line(scraper_));
  Finished refused;
  EXPECT_TRUE(Eventually([&] {
    refused = Curl(daemon, CertificateOptions("client"));
    return refused.output.find("HTTP/1.1 200") == std::string::npos;
  }));
  EXPECT_EQ(refused.exit_code, 0) << "the connection is there: " << refused.errors;
  EXPECT_THAT(refused.output, AllOf(HasSubstr("HTTP/1.1 401"),
                                    HasSubstr("no identity has a name of the client's certificate "
                                              "(grafana.example.org)"),
                                    Not(HasSubstr("crout_build_info"))));
  EXPECT_THAT(Curl(daemon, TokenOptions(scraper_)).output, HasSubstr("HTTP/1.1 200"));
}

// croutd does not start with an expired certificate, but a certificate may expire while it runs.
TEST_F(PagesTlsTest, AnExpiredCertificateIsRefusedByTheReader) {
  Daemon daemon(Tls());
  ASSERT_EQ(Curl(daemon, AuthorityOptions()).exit_code, 0);
  constexpr absl::Duration kLeft = absl::Seconds(4);
  absl::Time end;
  const auto is_taken = [&] {
    return SampleOf(Curl(daemon, AuthorityOptions()).output,
                    "crout_tls_certificate_timestamp_seconds{kind=\"end\"}") ==
           static_cast<double>(absl::ToUnixSeconds(end));
  };
  ASSERT_TRUE(SeenWithin(kLeft, [&] {
    end = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now() + kLeft) + 1);
    EndCertificateAt(files_, "server", "ca", end);
    bool taken = false;
    EXPECT_TRUE(Eventually([&] {
      taken = is_taken();
      return taken || absl::Now() >= end;
    }));
    return taken;
  }));
  EXPECT_TRUE(Eventually([&] { return absl::Now() > end + absl::Seconds(1); }));
  const Finished refused = Curl(daemon, AuthorityOptions());
  EXPECT_EQ(refused.exit_code, kBadPeerCertificate);
  EXPECT_THAT(refused.errors, HasSubstr("certificate has expired"));
  EXPECT_EQ(refused.output, "");
}

TEST_F(PagesTlsTest, NewConnectionsGetTheNewCertificate) {
  Daemon daemon(Tls());
  const auto is_served = [&](const std::string& authority) {
    return Curl(daemon, {"--cacert", files_.File(authority + ".crt")}).exit_code == 0;
  };
  ASSERT_TRUE(is_served("ca"));
  WriteFile(files_.File("server.crt"), "half");
  EXPECT_TRUE(Eventually(
      [&] { return daemon.process().Errors().find("tls_files_refused") != std::string::npos; }));
  EXPECT_TRUE(is_served("ca")) << "the last good one is in use";
  MakeCertificate(files_, "server", "other");
  EXPECT_TRUE(Eventually([&] { return is_served("other"); }));
  EXPECT_FALSE(is_served("ca"));
}

TEST_F(PagesTlsTest, InvalidSettingsAreRefused) {
  const auto refusal = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {ProgramPath("croutd"), "--check-config"});
    const Finished finished = RunToEnd(flags);
    return finished.exit_code == 2 ? finished.errors : "taken";
  };
  EXPECT_THAT(refusal({"--metrics-tls=on"}), HasSubstr("needs --tls-cert and --tls-key"));
  EXPECT_EQ(refusal(RoleFlags({"--metrics-listen=0.0.0.0:0"})), "taken");
}

}  // namespace
}  // namespace crout::e2e::pages_tls_test
