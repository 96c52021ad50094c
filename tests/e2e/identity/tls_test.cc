// SPDX-License-Identifier: Apache-2.0

// Tests TLS listeners with real certificates: accepted and rejected clients, and refused
// configurations.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "crout/v1/factorization_service.grpc.pb.h"
#include "tests/e2e/harness/certificates.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/server/scrape.h"
#include "tests/support/peers/http_peer.h"

namespace crout::e2e::tls_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    MakeAuthority(files_, "ca");
    MakeCertificate(files_, "server", "ca");
  }

  std::string Flag(const std::string& name, const std::string& file) const {
    return "--" + name + "=" + files_.File(file);
  }
  std::vector<std::string> ServerFlags(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> flags = {Flag("tls-cert", "server.crt"),
                                      Flag("tls-key", "server.key")};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  // Returns credentials that trust `authority` and present the certificate `name`, if given.
  std::shared_ptr<grpc::ChannelCredentials> Credentials(const std::string& authority,
                                                        const std::string& name = "") const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ReadFile(files_.File(authority + ".crt"));
    if (!name.empty()) {
      options.pem_cert_chain = ReadFile(files_.File(name + ".crt"));
      options.pem_private_key = ReadFile(files_.File(name + ".key"));
    }
    return grpc::SslCredentials(options);
  }

  // Returns the error message of croutd with --check-config, or "taken" if it accepts the flags.
  static std::string Refusal(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {ProgramPath("croutd"), "--check-config"});
    const Finished finished = RunToEnd(flags);
    return finished.exit_code == 2 ? finished.errors : "taken";
  }

  const TempDir files_;
};

// Calls the daemon on a new connection.
grpc::Status Call(const std::string& address,
                  const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub =
      v1::FactorizationService::NewStub(grpc::CreateCustomChannel(address, credentials, arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kTestTimeout));
  v1::GetServerInfoResponse info;
  return stub->GetServerInfo(&context, {}, &info);
}

// Returns the output of `openssl s_client` with `options`, which are shell words.
std::string Handshake(const std::string& address, const std::string& options) {
  const Finished finished =
      RunToEnd({"/bin/sh", "-c",
                "openssl s_client -brief -alpn h2 -connect " + address + " " + options + " 2>&1"});
  return finished.output;
}

TEST_F(TlsTest, ServesClientsThatTrustItsAuthority) {
  MakeAuthority(files_, "other");
  Daemon daemon(ServerFlags());
  const grpc::Status served = Call(daemon.address(), Credentials("ca"));
  EXPECT_TRUE(served.ok()) << served.error_message();
  EXPECT_EQ(Call(daemon.address(), Credentials("other")).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Call(daemon.address(), grpc::InsecureChannelCredentials()).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Call(daemon.address(), Credentials("ca")).ok()) << "the others did no harm";
}

TEST_F(TlsTest, ClientsUseTls) {
  MakeAuthority(files_, "other");
  MakeCertificate(files_, "client", "ca");
  Daemon daemon(ServerFlags({Flag("tls-client-ca", "ca.crt"), "--tls-client-certs=required"}));
  const auto info = [&](const TlsOptions& tls, const std::string& address) {
    ClientOptions options;
    options.server = address;
    options.tls = tls;
    options.retry.max_attempts = 1;
    const auto client = Client::Connect(options);
    return client.ok() ? (*client)->ServerInfo().status() : client.status();
  };
  const TlsOptions good = {files_.File("ca.crt"), files_.File("client.crt"),
                           files_.File("client.key")};
  EXPECT_TRUE(info(good, daemon.address()).ok()) << info(good, daemon.address());
  TlsOptions wrong = good;
  wrong.ca_file = files_.File("other.crt");
  EXPECT_TRUE(absl::IsUnavailable(info(wrong, daemon.address())));
  wrong = good;
  wrong.server_name = "elsewhere.example";
  EXPECT_TRUE(absl::IsUnavailable(info(wrong, daemon.address()))) << "names are checked";
  wrong.server_name = "localhost";
  EXPECT_TRUE(info(wrong, daemon.address()).ok());
  EXPECT_TRUE(absl::IsUnavailable(info({files_.File("ca.crt")}, daemon.address())));

  const auto ctl = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {ProgramPath("croutctl"), "--server=" + daemon.address()});
    return RunToEnd(arguments);
  };
  const std::vector<std::string> flags = {"status",
                                          "--timeout=1m",
                                          "--tls",
                                          Flag("ca", "ca.crt"),
                                          Flag("cert", "client.crt"),
                                          Flag("key", "client.key")};
  EXPECT_EQ(ctl(flags).exit_code, 0) << ctl(flags).errors;
  EXPECT_NE(ctl({"status"}).exit_code, 0);
  EXPECT_THAT(ctl({"status", Flag("ca", "ca.crt")}).errors, HasSubstr("need --tls"));
  EXPECT_THAT(ctl({"status", "--tls", "--ca=/nowhere.pem"}).errors, HasSubstr("/nowhere.pem"));
  EXPECT_THAT(ctl({"status", "--tls", Flag("cert", "client.crt")}).errors, HasSubstr("give both"));
  ASSERT_EQ(chmod(files_.File("client.key").c_str(), 0644), 0);
  EXPECT_THAT(ctl(flags).errors, HasSubstr("chmod 600"));
}

TEST_F(TlsTest, AcceptsTls12AndNewer) {
  Daemon daemon(ServerFlags());
  EXPECT_THAT(Handshake(daemon.address(), "-tls1_3"), HasSubstr("Protocol version: TLSv1.3"));
  EXPECT_THAT(Handshake(daemon.address(), "-tls1_2"), HasSubstr("Protocol version: TLSv1.2"));
  EXPECT_THAT(daemon.process().Errors(), Not(HasSubstr("unsupported protocol")));
  // At security level 0 the client offers these versions, so that only the server can refuse them.
  for (const std::string old : {"-tls1_1", "-tls1"}) {
    EXPECT_THAT(Handshake(daemon.address(), old + " -cipher DEFAULT@SECLEVEL=0"),
                Not(HasSubstr("Protocol version")))
        << old;
  }
  EXPECT_TRUE(Eventually(
      [&] { return daemon.process().Errors().find("unsupported protocol") != std::string::npos; }));
}

TEST_F(TlsTest, ClientsPresentRequiredCertificates) {
  MakeCertificate(files_, "client", "ca");
  MakeCertificate(files_, "late", "ca", -1);
  MakeAuthority(files_, "other");
  MakeCertificate(files_, "stranger", "other");
  for (const bool required : {true, false}) {
    Daemon daemon(
        ServerFlags({Flag("tls-client-ca", "ca.crt"),
                     required ? "--tls-client-certs=required" : "--tls-client-certs=optional"}));
    EXPECT_TRUE(Call(daemon.address(), Credentials("ca", "client")).ok());
    EXPECT_EQ(Call(daemon.address(), Credentials("ca")).ok(), !required);
    EXPECT_FALSE(Call(daemon.address(), Credentials("ca", "stranger")).ok());
    EXPECT_FALSE(Call(daemon.address(), Credentials("ca", "late")).ok());
  }
}

TEST_F(TlsTest, NewConnectionsGetTheNewCertificate) {
  Daemon daemon(ServerFlags());
  const auto old =
      v1::FactorizationService::NewStub(grpc::CreateChannel(daemon.address(), Credentials("ca")));
  const auto call_old = [&] {
    grpc::ClientContext context;
    v1::GetServerInfoResponse info;
    return old->GetServerInfo(&context, {}, &info).ok();
  };
  ASSERT_TRUE(call_old());
  MakeAuthority(files_, "next");
  ASSERT_FALSE(Call(daemon.address(), Credentials("next")).ok());
  MakeCertificate(files_, "server", "next");
  EXPECT_TRUE(Eventually([&] { return Call(daemon.address(), Credentials("next")).ok(); }));
  EXPECT_FALSE(Call(daemon.address(), Credentials("ca")).ok());
  EXPECT_TRUE(call_old()) << "its connection goes on";
}

// Tools for certificates replace a whole directory, so that certificate and key always match.
TEST_F(TlsTest, ADirectoryOfCertificatesMayBeReplaced) {
  MakeAuthority(files_, "next");
  const auto issue = [&](const std::string& directory, const std::string& authority) {
    MakeCertificate(files_, "server", authority);
    ASSERT_EQ(mkdir(files_.File(directory).c_str(), 0700), 0);
    for (const std::string name : {"/server.crt", "/server.key"}) {
      ASSERT_EQ(std::rename(files_.File(name).c_str(), files_.File(directory + name).c_str()), 0);
    }
    ASSERT_EQ(symlink(directory.c_str(), files_.File("live.next").c_str()), 0);
    ASSERT_EQ(std::rename(files_.File("live.next").c_str(), files_.File("live").c_str()), 0);
  };
  issue("first", "ca");
  Daemon daemon({Flag("tls-cert", "live/server.crt"), Flag("tls-key", "live/server.key")});
  const auto taken = [&] {
    return SampleOf(daemon.ScrapeMetrics(), "crout_file_loaded_timestamp_seconds{file=\"tls\"}")
        .value_or(0);
  };
  ASSERT_TRUE(Eventually([&] { return taken() > 0; }));
  ASSERT_TRUE(Call(daemon.address(), Credentials("ca")).ok());
  ASSERT_FALSE(Call(daemon.address(), Credentials("next")).ok());

  const double exchange = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  EXPECT_LE(taken(), exchange);
  issue("second", "next");
  EXPECT_TRUE(Eventually([&] { return Call(daemon.address(), Credentials("next")).ok(); }));
  EXPECT_FALSE(Call(daemon.address(), Credentials("ca")).ok());
  EXPECT_TRUE(Eventually([&] { return taken() >= exchange; })) << taken() << " " << exchange;
}

TEST_F(TlsTest, InvalidFilesLeaveTheOldOnesInUse) {
  Daemon daemon(ServerFlags({Flag("tls-client-ca", "ca.crt"), "--tls-client-certs=optional"}));
  MakeCertificate(files_, "next", "ca");
  const auto logged = [&](const std::string& reason) {
    return Eventually([&] { return daemon.process().Errors().find(reason) != std::string::npos; });
  };
  const auto expect_served = [&] {
    const grpc::Status status = Call(daemon.address(), Credentials("ca"));
    EXPECT_TRUE(status.ok()) << status.error_message();
  };
  const std::string good = ReadFile(files_.File("server.crt"));
  WriteFile(files_.File("server.crt"), good + good.substr(0, 200));
  EXPECT_TRUE(logged("an incomplete or malformed certificate"));
  const auto scraped = [&](const std::string& sample) {
    return Eventually(
        [&] { return daemon.ScrapeMetrics().find(sample + "\n") != std::string::npos; });
  };
  EXPECT_TRUE(scraped("crout_file_refused{file=\"tls\"} 1"));
  const std::string scrape = daemon.ScrapeMetrics();
  const auto begin = SampleOf(scrape, "crout_tls_certificate_timestamp_seconds{kind=\"begin\"}");
  const auto end = SampleOf(scrape, "crout_tls_certificate_timestamp_seconds{kind=\"end\"}");
  ASSERT_TRUE(begin && end) << scrape;
  EXPECT_EQ(*end - *begin, 2 * 24 * 3600);
  EXPECT_NEAR(*begin, absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()), 3600);
  expect_served();
  WriteFile(files_.File("server.crt"), ReadFile(files_.File("next.crt")));
  EXPECT_TRUE(logged("is not the key of"));
  expect_served();
  WriteFile(files_.File("server.crt"), good);
  WriteFile(files_.File("ca.crt"), "");
  EXPECT_TRUE(logged("contains no PEM certificate"));
  MakeAuthority(files_, "ca");
  MakeCertificate(files_, "server", "ca");
  EXPECT_TRUE(Eventually([&] { return Call(daemon.address(), Credentials("ca")).ok(); }));
  EXPECT_TRUE(logged("tls_files_reloaded"));
  EXPECT_TRUE(scraped("crout_file_refused{file=\"tls\"} 0"));
}

// A TCP connection that sends `bytes` and then waits.
class SilentConnection {
 public:
  SilentConnection(const std::string& address, const std::string& bytes)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in where = {};
    where.sin_family = AF_INET;
    where.sin_port =
        htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        connect(fd_, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0 &&
        send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  ~SilentConnection() { close(fd_); }
  SilentConnection(const SilentConnection&) = delete;  // owns the socket
  SilentConnection& operator=(const SilentConnection&) = delete;
  bool connected() const { return connected_; }
  // Returns whether the server has not closed the connection.
  bool open() const {
    char byte;
    return recv(fd_, &byte, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

 private:
  const int fd_;
  bool connected_ = false;
};

// Opens `count` connections. Half of them send nothing, the others the begin of a handshake.
std::vector<std::unique_ptr<SilentConnection>> UnfinishedHandshakes(const std::string& address,
                                                                    int count) {
  std::vector<std::unique_ptr<SilentConnection>> silent;
  for (int i = 0; i < count; ++i) {
    silent.push_back(std::make_unique<SilentConnection>(
        address, i % 2 == 0 ? "" : std::string("\x16\x03\x01\x02\x00\x01", 6)));
    EXPECT_TRUE(silent.back()->connected()) << i;
  }
  return silent;
}

double Connections(const Daemon& daemon) {
  return SampleOf(daemon.ScrapeMetrics(), "crout_connections{kind=\"open\"}").value_or(-1);
}

TEST_F(TlsTest, UnfinishedHandshakesDoNotBlockClients) {
  constexpr int kMany = 1000;
  constexpr int64_t kMemory = int64_t{256} << 20;
  constexpr absl::Duration kHandshakeTime = absl::Seconds(10);  // handshake timeout of the daemon
  Daemon daemon(ServerFlags());
  ASSERT_TRUE(Call(daemon.address(), Credentials("ca")).ok());
  const int64_t before = StatusBytes(daemon.process().pid(), "VmRSS");
  // An honest client is served while all these connections are open.
  std::vector<std::unique_ptr<SilentConnection>> silent;
  EXPECT_TRUE(SeenWithin(kHandshakeTime, [&] {
    silent.clear();
    silent = UnfinishedHandshakes(daemon.address(), kMany);
    EXPECT_TRUE(
        Eventually([&] { return Connections(daemon) >= kMany || !silent.front()->open(); }));
    EXPECT_TRUE(Call(daemon.address(), Credentials("ca")).ok());
    return silent.front()->open();
  })) << "an honest client meanwhile";
  EXPECT_LT(StatusBytes(daemon.process().pid(), "VmRSS") - before, kMemory);
  EXPECT_TRUE(Eventually([&] { return Connections(daemon) < kMany / 10; }))
      << "their time is over after a while";
  EXPECT_EQ(SampleOf(daemon.ScrapeMetrics(), "crout_connections_refused_total"), 0);
  EXPECT_TRUE(Call(daemon.address(), Credentials("ca")).ok());
}

// Log lines of failed handshakes must not displace others, because anyone can cause them.
TEST_F(TlsTest, HandshakesThatFailAreCountedAndDoNotFillTheLog) {
  constexpr int kAttempts = 300;
  constexpr double kLinesPerSecond = 10;
  Daemon daemon(ServerFlags());
  const absl::Time begin = absl::Now();
  for (int i = 0; i < kAttempts; ++i) {
    crout::testing::HttpPeer peer(daemon.address());
    peer.Send("GET / HTTP/1.0\r\n\r\n");
    peer.ReadToEnd();
  }
  EXPECT_TRUE(Eventually([&] {
    return SampleOf(daemon.ScrapeMetrics(), "crout_tls_handshakes_failed_total") == kAttempts;
  }));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  EXPECT_TRUE(daemon.Logs({"Handshake failed"}));
  const std::vector<std::string> pieces =
      absl::StrSplit(daemon.process().Errors(), "Handshake failed");
  const auto lines = static_cast<double>(pieces.size() - 1);
  EXPECT_LE(lines, kLinesPerSecond * (seconds + 2));
  EXPECT_TRUE(Call(daemon.address(), Credentials("ca")).ok());
}

// The listener of gRPC would stop permanently if the file descriptors were exhausted.
TEST_F(TlsTest, ConnectionsBeyondTheLimitDoNotStopTheListener) {
  Daemon daemon(ServerFlags({"--max-connections=50"}));
  const auto silent = UnfinishedHandshakes(daemon.address(), 200);
  const auto refused = [&] {
    return SampleOf(daemon.ScrapeMetrics(), "crout_connections_refused_total").value_or(0);
  };
  EXPECT_TRUE(Eventually([&] { return refused() >= 150; }));
  EXPECT_LE(Connections(daemon), 50);
  EXPECT_TRUE(Eventually([&] { return Call(daemon.address(), Credentials("ca")).ok(); }))
      << "as soon as the time of some is over";
}

TEST_F(TlsTest, UnixSocketsDoNotUseTls) {
  const std::string socket = "unix:" + files_.File("socket");
  Daemon daemon(ServerFlags({"--listen=" + socket + ",127.0.0.1:0"}));
  EXPECT_TRUE(Call(socket, grpc::InsecureChannelCredentials()).ok());
  EXPECT_TRUE(Call(daemon.addresses()[1], Credentials("ca")).ok());
}

TEST_F(TlsTest, OtherMachinesNeedTlsOrTheInsecureFlag) {
  for (const char* open : {"0.0.0.0:0", "[::]:0", "192.0.2.1:1", "127.0.0.1:0,example.org:1"}) {
    EXPECT_THAT(Refusal({std::string("--listen=") + open}), HasSubstr("--insecure")) << open;
    EXPECT_EQ(Refusal({std::string("--listen=") + open, "--insecure"}), "taken");
    EXPECT_EQ(Refusal(ServerFlags({std::string("--listen=") + open})), "taken");
  }
  EXPECT_EQ(Refusal({"--listen=127.8.0.1:0,[::1]:0,localhost:0,unix:/tmp/a"}), "taken");
}

TEST_F(TlsTest, MachinesThatJoinAGroupMustBeAuthenticated) {
  const std::string open = "--group=far=join:2@0.0.0.0:1";
  const std::string authority = Flag("tls-client-ca", "ca.crt");
  WriteFile(files_.File("identities"),
            "[far]\ntenants = a\nroles = rank\ncertificate = far.example.org\n");
  ASSERT_EQ(chmod(files_.File("identities").c_str(), 0600), 0);
  EXPECT_THAT(Refusal({open}), HasSubstr("--insecure"));
  EXPECT_THAT(Refusal(ServerFlags({open})),
              HasSubstr("any machine on the network could join at 0.0.0.0:1. Set --identities"));
  EXPECT_THAT(Refusal(ServerFlags({open, authority, "--tls-client-certs=optional"})),
              HasSubstr("Set --identities"));
  EXPECT_EQ(Refusal(ServerFlags({open, authority})), "taken");
  EXPECT_EQ(Refusal(ServerFlags({open, Flag("identities", "identities")})), "taken");
  EXPECT_EQ(Refusal({open, "--insecure"}), "taken");
  EXPECT_EQ(Refusal({"--group=far=join:2@127.0.0.1:1"}), "taken");
}

TEST_F(TlsTest, UnusableFilesAreRefusedAtTheStart) {
  MakeCertificate(files_, "other", "ca");
  MakeCertificate(files_, "late", "ca", -1);
  WriteFile(files_.File("half.crt"), ReadFile(files_.File("server.crt")).substr(0, 200));
  const auto with = [&](const std::string& certificate, const std::string& key) {
    return Refusal({Flag("tls-cert", certificate), Flag("tls-key", key)});
  };
  EXPECT_THAT(Refusal({Flag("tls-cert", "server.crt")}), HasSubstr("must be given together"));
  EXPECT_THAT(Refusal({Flag("tls-client-ca", "ca.crt")}), HasSubstr("needs TLS"));
  EXPECT_THAT(with("none.crt", "server.key"), HasSubstr("No such file"));
  EXPECT_THAT(with("half.crt", "server.key"), HasSubstr("contains no PEM certificate"));
  EXPECT_THAT(with("server.crt", "server.crt"), HasSubstr("contains no PEM private key"));
  EXPECT_THAT(with("server.crt", "other.key"), HasSubstr("is not the key of"));
  EXPECT_THAT(with("late.crt", "late.key"), HasSubstr("has expired. Renew it"));
  EXPECT_EQ(with("server.crt", "server.key"), "taken");
  for (const mode_t bad : {0604, 0644, 0660, 0610}) {
    ASSERT_EQ(chmod(files_.File("server.key").c_str(), bad), 0);
    EXPECT_THAT(with("server.crt", "server.key"), HasSubstr("chmod 600")) << bad;
  }
  ASSERT_EQ(chmod(files_.File("server.key").c_str(), 0640), 0);
  EXPECT_EQ(with("server.crt", "server.key"), "taken");
  // The files must not be writable by others, because they determine which peers are trusted.
  const std::vector<std::string> asking = ServerFlags({Flag("tls-client-ca", "ca.crt")});
  for (const char* const name : {"ca.crt", "server.crt"}) {
    for (const mode_t bad : {0666, 0664, 0602}) {
      ASSERT_EQ(chmod(files_.File(name).c_str(), bad), 0);
      EXPECT_THAT(Refusal(asking), HasSubstr("chmod go-w")) << name << bad;
    }
    ASSERT_EQ(chmod(files_.File(name).c_str(), 0644), 0);
    EXPECT_EQ(Refusal(asking), "taken") << name;
  }
}

}  // namespace
}  // namespace crout::e2e::tls_test
