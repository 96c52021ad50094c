// SPDX-License-Identifier: Apache-2.0

// Tests named servers and the environment variables.
#include "client/cpp/servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "crout/client.h"

namespace crout::client_test::servers_test {
namespace {

using internal::ReadServer;

using ::testing::HasSubstr;

constexpr char kPath[] = "/etc/crout/servers.toml";

absl::StatusOr<ClientOptions> Read(const std::string& text, const std::string& name = "lab") {
  return ReadServer(text, kPath, name);
}

TEST(ServersTest, ReadsTheSettingsOfAServer) {
  const auto lab = Read(
      "# mine\n\n[home] # here\naddress = \"unix:/run/crout.sock\"\n\r\n[lab]\n"
      "address = \"solver.example:50051\"  # far\ntls = true\nca = 'ca.crt'\n"
      "cert = \"/keys/alice.crt\"\nkey=\"/keys/alice.key\"\nserver_name = \"crout.example\"\n"
      "token_file = \"alice.token\"\ntenant = \"a\"");
  ASSERT_TRUE(lab.ok()) << lab.status();
  EXPECT_EQ(lab->server, "solver.example:50051");
  EXPECT_EQ(lab->tenant, "a");
  EXPECT_EQ(lab->token_file, "/etc/crout/alice.token") << "from where the file is";
  ASSERT_TRUE(lab->tls.has_value());
  EXPECT_EQ(lab->tls->ca_file, "/etc/crout/ca.crt");
  EXPECT_EQ(lab->tls->cert_file, "/keys/alice.crt");
  EXPECT_EQ(lab->tls->key_file, "/keys/alice.key");
  EXPECT_EQ(lab->tls->server_name, "crout.example");
  const auto home = Read("[home]\naddress = \"unix:/run/crout.sock\"\ntls = false\n", "home");
  ASSERT_TRUE(home.ok()) << home.status();
  EXPECT_FALSE(home->tls.has_value());
  EXPECT_TRUE(absl::IsNotFound(Read("[home]\naddress = \"h:1\"").status()));
}

TEST(ServersTest, ErrorsNameTheirLine) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"address = \"h:1\"", "line 1: it belongs to no server"},
      {"[lab]\naddress", "line 2: neither [NAME] nor key"},
      {"[lab]\naddress = h:1", "line 2: a value is in quotes"},
      {"[lab]\naddress = \"h:1", "in quotes"},
      {"[lab]\naddress = \"h:1\" x", "something behind the value"},
      {"[lab]\naddress = \"h\"", "line 2: the server's address 'h' has no port"},
      {"[lab]\naddress = \"h:1\"\naddress = \"h:2\"", "line 3: a second 'address'"},
      {"[lab]\naddress = \"h:1\"\n[lab]", "line 3: a second [lab]"},
      {"[lab\naddress = \"h:1\"", "line 1: a [ without its ]"},
      {"[a b]", "a name has 1 to 64"},
      {"[lab]\n[home]\naddress = \"h:1\"", "[lab] ends without an address"},
      {"[lab]\ntls = \"true\"", "tls is true or false"},
      {"[lab]\nca = \"\"", "an empty path"},
      {"[lab]\nca = \"a\\\\b\"", "'single quotes'"},
      {"[lab]\ncertificate = \"a\"", "'certificate' is none of address"},
      {"[lab]\ntenant = \"a b\"", "line 2: the tenant"},
      {"[lab]\ntoken = \"crout_secret\"", "token_file = \"PATH\""},
      {"[lab]\naddress = \"h:1\"\n[other]\nbad = \"x\"", "line 4: 'bad'"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status status = Read(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(kPath)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
    EXPECT_THAT(std::string(status.message()), ::testing::Not(HasSubstr("secret"))) << text;
  }
}

// Runs each test with its own environment variables.
class EnvironmentTest : public ::testing::Test {
 protected:
  EnvironmentTest() {
    for (const char* name : {"SERVER", "TENANT", "TLS", "CA", "CERT", "KEY", "TOKEN_FILE"}) {
      unsetenv(absl::StrCat("CROUT_", name).c_str());
    }
    setenv("CROUT_SERVERS", path_.c_str(), 1);
  }
  ~EnvironmentTest() override {
    unlink(path_.c_str());
    unsetenv("CROUT_SERVERS");
  }
  void Write(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }
  static absl::Status Connect(const ClientOptions& options) {
    return Client::Connect(options).status();
  }
  static std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/crout_servers_test.", getpid());
};

TEST_F(EnvironmentTest, ANameStandsForItsServer) {
  EXPECT_THAT(MessageOf(Connect({.server = "lab"})),
              ::testing::AllOf(HasSubstr("'lab' has no port"), HasSubstr("no file " + path_)));
  Write("[lab]\naddress = \"unix:/run/crout.sock\"\ntenant = \"a\"\n");
  EXPECT_EQ(Connect({.server = "lab"}), absl::OkStatus());
  EXPECT_EQ(MessageOf(Connect({.server = "labs"})),
            absl::StrCat("no server 'labs' in ", path_,
                         " (it has lab), and the server's address 'labs' has no port: write "
                         "host:port, [IPv6]:port or unix:PATH"));
  const auto found = FindServer({.server = "lab", .tenant = "b"});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->tenant, "b") << "options go before";
  EXPECT_EQ(FindServer({.server = "h:1"})->server, "h:1") << "an address is never a name";
  Write("[lab]\naddress = \"h\"\n");
  EXPECT_EQ(Connect({.server = "h:1"}), absl::OkStatus()) << "and needs no good file";
  EXPECT_THAT(MessageOf(Connect({.server = "lab"})), HasSubstr("line 2"));
}

TEST_F(EnvironmentTest, AFileThatOthersWriteIsRefused) {
  const std::string good = "[lab]\naddress = \"h:1\"\n";
  Write(good, 0644);
  EXPECT_EQ(Connect({.server = "lab"}), absl::OkStatus());
  for (const mode_t bad : {0664, 0602}) {
    Write(good, bad);
    EXPECT_THAT(MessageOf(Connect({.server = "lab"})), HasSubstr("chmod 600")) << bad;
  }
}

TEST_F(EnvironmentTest, AnEmptyFileHasNoServers) {
  Write("", 0600);
  EXPECT_THAT(MessageOf(Connect({.server = "lab"})), HasSubstr("lab"));
  EXPECT_THAT(MessageOf(Connect({.server = "lab"})), Not(HasSubstr("cannot read")));
}

TEST_F(EnvironmentTest, TokensAreReadFromFilesOfTheirOwn) {
  const std::string token = path_ + ".token";
  std::ofstream(token) << "crout_t\n";
  ASSERT_EQ(chmod(token.c_str(), 0644), 0);
  Write(absl::StrCat("[lab]\naddress = \"h:1\"\ntls = true\ntoken_file = \"", token, "\"\n"));
  EXPECT_THAT(MessageOf(Connect({.server = "lab"})),
              ::testing::AllOf(HasSubstr("mode 644"), HasSubstr("chmod 600")));
  ASSERT_EQ(chmod(token.c_str(), 0600), 0);
  EXPECT_EQ(Connect({.server = "lab"}), absl::OkStatus());
  Write(absl::StrCat("[lab]\naddress = \"h:1\"\ntoken_file = \"", token, "\"\n"));
  EXPECT_THAT(MessageOf(Connect({.server = "lab"})), HasSubstr("give TLS too"));
  unlink(token.c_str());
}

TEST_F(EnvironmentTest, TheEnvironmentSuppliesUnsetOptions) {
  setenv("CROUT_SERVER", "h:1", 1);
  setenv("CROUT_TENANT", "a", 1);
  setenv("CROUT_CA", "ca.crt", 1);
  setenv("CROUT_CERT", "c.crt", 1);
  setenv("CROUT_KEY", "c.key", 1);
  setenv("CROUT_TOKEN_FILE", "t", 1);
  auto completed = WithEnvironment({.server = ""});
  ASSERT_TRUE(completed.ok());
  EXPECT_EQ(completed->server, "h:1");
  EXPECT_EQ(completed->tenant, "a");
  EXPECT_EQ(completed->token_file, "t");
  ASSERT_TRUE(completed->tls.has_value());
  EXPECT_EQ(completed->tls->ca_file, "ca.crt");
  EXPECT_EQ(completed->tls->key_file, "c.key");
  TlsOptions own;
  own.cert_file = "own.crt";
  completed = WithEnvironment({.server = "g:1", .tls = own, .token = "crout_own"});
  EXPECT_EQ(completed->server, "g:1");
  EXPECT_EQ(completed->tls->cert_file, "own.crt");
  EXPECT_EQ(completed->tls->key_file, "") << "a certificate and its key are of one place";
  EXPECT_EQ(completed->token_file, "");
  setenv("CROUT_TLS", "maybe", 1);
  EXPECT_THAT(MessageOf(WithEnvironment({}).status()), HasSubstr("CROUT_TLS"));
}

}  // namespace
}  // namespace crout::client_test::servers_test
