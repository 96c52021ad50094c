// SPDX-License-Identifier: Apache-2.0

#include "tests/e2e/harness/daemon.h"

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/support/peers/http_peer.h"

namespace crout::e2e {
namespace {

constexpr char kReady[] = "croutd ready listen=";

std::vector<std::string> DaemonCommand(const std::string& program, const std::string& socket,
                                       const std::vector<std::string>& flags) {
  // Omits defaults that `flags` override, because the daemon refuses repeated flags.
  std::vector<std::string> command = {ProgramPath(program)};
  if (program == "croutd_test") command.push_back("--failpoints=" + socket);
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

Daemon::Daemon(const std::vector<std::string>& flags, const std::string& program,
               const std::string& stderr_path)
    : process_(std::make_unique<Process>(
          DaemonCommand(program, directory_.File("failpoints"), flags), "", stderr_path)) {
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

std::unique_ptr<Client> Daemon::NewClient(const std::string& tenant) const {
  ClientOptions options;
  options.server = address();
  options.tenant = tenant;
  options.retry.max_attempts = 1;
  return *Client::Connect(options);
}

std::shared_ptr<grpc::Channel> Daemon::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // the probe would enlarge the window
  return grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments);
}

std::unique_ptr<v1::FactorizationService::Stub> Daemon::NewStub() const {
  return v1::FactorizationService::NewStub(NewChannel());
}

void Daemon::AwaitRest() const {
  // Returns whether the number of a tile is 0. It precedes the name of the tile in the page.
  const auto is_none = [&](const std::string& tile) {
    const std::string page = Get("/");
    const size_t name = page.find("<span class=\"dim\">" + tile);
    return name != std::string::npos && page.compare(page.rfind("<b>", name), 4, "<b>0") == 0;
  };
  // The order matters, because a worker may become idle after the call of its job has ended.
  EXPECT_TRUE(Eventually([&] { return is_none("calls in flight"); })) << Get("/");
  EXPECT_TRUE(Eventually([&] { return is_none("streams busy"); })) << Get("/");
}

bool Daemon::Logs(const std::vector<std::string>& texts) const {
  return Eventually([&] {
    const std::string log = process_->Errors();
    return std::all_of(texts.begin(), texts.end(),
                       [&](const std::string& text) { return absl::StrContains(log, text); });
  });
}

std::string Daemon::ScrapeMetrics() const { return Get("/metrics"); }

std::string Daemon::Get(const std::string& path) const {
  return crout::testing::HttpRequest(metrics_address_, "GET", path);
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

Holdings HoldingsIn(const ServerInfo& info) {
  Holdings holdings;
  for (const DeviceStatus& device : info.devices) {
    holdings.device_bytes += device.reserved_bytes;
    holdings.streams_busy += device.streams_busy;
    holdings.queue_depth += device.queue_depth;
  }
  holdings.host_bytes = info.host_reserved_bytes;
  holdings.cached_factors = info.cached_factors;
  return holdings;
}

Holdings HoldingsOf(Client& client) {
  const auto info = client.ServerInfo();
  if (info.ok()) return HoldingsIn(*info);
  ADD_FAILURE() << info.status();
  return {};
}

}  // namespace crout::e2e
