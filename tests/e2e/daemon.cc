#include "tests/e2e/daemon.h"

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace crout::e2e {
namespace {

constexpr char kReady[] = "croutd ready listen=";

std::vector<std::string> DaemonCommand(const std::string& program,
                                       const std::vector<std::string>& flags) {
  // Of a repeated flag the daemon would refuse the second.
  std::vector<std::string> command = {ProgramPath(program)};
  for (const char* standard : {"--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0",
                               "--devices=host", "--drain-grace=0s"}) {
    const std::string name = std::string(standard).substr(0, std::string(standard).find('=') + 1);
    bool given = false;
    for (const std::string& flag : flags) given = given || flag.rfind(name, 0) == 0;
    if (!given) command.push_back(standard);
  }
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

}  // namespace

Daemon::Daemon(const std::vector<std::string>& flags, const std::string& program)
    : process_(std::make_unique<Process>(DaemonCommand(program, flags))) {
  std::string output;
  const bool ready = Eventually([&] {
    output = process_->Output();
    return output.find('\n') != std::string::npos || !process_->running();
  });
  if (!ready || output.rfind(kReady, 0) != 0) {
    ADD_FAILURE() << "croutd did not get ready: '" << output << "'\n" << process_->Errors();
    return;
  }
  const std::string line = output.substr(0, output.find('\n'));
  const size_t metrics = line.find(" metrics=");
  addresses_ = absl::StrSplit(line.substr(sizeof kReady - 1, metrics - (sizeof kReady - 1)), ',');
  metrics_address_ = line.substr(metrics + 9);
}

std::unique_ptr<client::Client> Daemon::NewClient(const std::string& tenant) const {
  client::ClientOptions options;
  options.server = address();
  options.tenant = tenant;
  options.retry.max_attempts = 1;
  return *client::Client::Connect(options);
}

std::shared_ptr<grpc::Channel> Daemon::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments);
}

std::unique_ptr<v1::FactorizationService::Stub> Daemon::NewStub() const {
  return v1::FactorizationService::NewStub(NewChannel());
}

std::string Daemon::ScrapeMetrics() const {
  const std::vector<std::string> parts = absl::StrSplit(metrics_address_, ':');
  int port = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &port)) return "";
  sockaddr_in peer = {};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, parts[0].c_str(), &peer.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string reply;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) == 0) {
    const std::string request = "GET /metrics HTTP/1.0\r\nHost: test\r\n\r\n";
    send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    char buffer[65536];
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;) reply.append(buffer, got);
  }
  close(fd);
  return reply;
}

std::vector<std::string> Daemon::CtlCommand(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {ProgramPath("croutctl"), "--server=" + address()});
  return arguments;
}

Finished Daemon::Ctl(std::vector<std::string> arguments, const std::string& stdin_path) const {
  return RunToEnd(CtlCommand(std::move(arguments)), stdin_path);
}

std::ostream& operator<<(std::ostream& out, const Holdings& holdings) {
  return out << "device_bytes=" << holdings.device_bytes << " host_bytes=" << holdings.host_bytes
             << " streams_busy=" << holdings.streams_busy << " queue_depth=" << holdings.queue_depth
             << " cached_factors=" << holdings.cached_factors;
}

Holdings HoldingsOf(client::Client& client) {
  const auto info = client.ServerInfo();
  Holdings holdings;
  if (!info.ok()) {
    ADD_FAILURE() << info.status();
    return holdings;
  }
  for (const v1::DeviceStatus& device : info->devices()) {
    holdings.device_bytes += device.reserved_bytes();
    holdings.streams_busy += device.streams_busy();
    holdings.queue_depth += device.queue_depth();
  }
  holdings.host_bytes = info->host_reserved_bytes();
  holdings.cached_factors = info->cached_factors();
  return holdings;
}

bool Eventually(const std::function<bool()>& condition, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!condition()) {
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

}  // namespace crout::e2e
