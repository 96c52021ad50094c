#include "server/daemon.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server_builder.h"
#include "kernels/util/status_macros.h"
#include "server/scheduling/reason.h"

namespace crout {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxCallsOfConnection = 1024;
constexpr int kFrameBytes = 4 << 20;
constexpr auto kHousekeepingPeriod = std::chrono::seconds(1);
// How long answered calls may take to leave once they were told to.
constexpr auto kForcedEnd = std::chrono::seconds(5);
// How long idle connections may take to close when no call is left.
constexpr auto kConnectionsEnd = std::chrono::seconds(1);

bool IsUnix(const std::string& address) { return absl::StartsWith(address, "unix:"); }

// "host:port" with the port that was bound instead of 0.
std::string WithPort(const std::string& address, int port) {
  if (IsUnix(address)) return address;
  return absl::StrCat(address.substr(0, address.rfind(':') + 1), port);
}

Clock::duration ToChrono(absl::Duration duration) { return absl::ToChronoNanoseconds(duration); }

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(
    const Config& config, std::vector<std::unique_ptr<Device>> devices) {
  std::unique_ptr<Daemon> daemon(new Daemon(config));
  CROUT_ASSIGN_OR_RETURN(daemon->stack_, Stack::Create(std::move(devices), config));
  CROUT_RETURN_IF_ERROR(daemon->Bind());
  daemon->housekeeper_ = std::thread([daemon = daemon.get()] { daemon->HousekeepingLoop(); });
  daemon->SetServing(true);
  return daemon;
}

absl::Status Daemon::Bind() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  const int max_message = static_cast<int>(config_.limits.max_message_bytes);
  builder.SetMaxReceiveMessageSize(max_message);
  builder.SetMaxSendMessageSize(max_message);
  // Clients that vanished without a word are found by pings, and their calls end; those that ping
  // us may do so as often as our own client does.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // Of one connection; further calls wait at the client.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsOfConnection);
  // Fewer, larger frames: less to parse for each byte of a matrix.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  grpc::ResourceQuota quota("croutd");
  quota.Resize(config_.receive_buffer_bytes);
  builder.SetResourceQuota(quota);
  // Two daemons on one port would share its calls, and a handle is known to one of them.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  std::vector<int> ports(config_.listen.size(), 0);
  for (size_t i = 0; i < config_.listen.size(); ++i) {
    builder.AddListeningPort(config_.listen[i], grpc::InsecureServerCredentials(), &ports[i]);
  }
  builder.RegisterService(&stack_->service());
  server_ = builder.BuildAndStart();
  for (size_t i = 0; i < ports.size(); ++i) {
    if (server_ == nullptr || ports[i] == 0) {
      return absl::UnavailableError(absl::StrCat("--listen: could not bind ",
                                                 absl::StrJoin(config_.listen, ","),
                                                 "; is another daemon serving there?"));
    }
    addresses_.push_back(WithPort(config_.listen[i], ports[i]));
  }
  SetServing(false);
  CROUT_ASSIGN_OR_RETURN(endpoint_,
                         MetricsEndpoint::Start(config_.metrics_listen, stack_->core().metrics));
  return absl::OkStatus();
}

Daemon::~Daemon() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
  }
  if (housekeeper_.joinable()) housekeeper_.join();
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now() + kConnectionsEnd);
    server_->Wait();
  }
}

std::string Daemon::ReadyLine() const {
  return absl::StrCat("croutd ready listen=", absl::StrJoin(addresses_, ","),
                      " metrics=", endpoint_->address());
}

void Daemon::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  health->SetServingStatus(serving);  // of "" and of every service
  health->SetServingStatus(v1::FactorizationService::service_full_name(), serving);
}

void Daemon::Housekeep() {
  stack_->Housekeep();
  if (!any_device_healthy()) SetServing(false);
}

void Daemon::HousekeepingLoop() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    mutex_.Unlock();
    Housekeep();
    mutex_.Lock();
    if (!stopping_) wake_.WaitUntil(&mutex_, Clock::now() + kHousekeepingPeriod);
  }
}

bool Daemon::Drain(const std::function<bool()>& hurry) {
  CallRegistry& calls = stack_->core().calls;
  stack_->core().draining = true;
  SetServing(false);
  Log(LogLevel::kInfo, "drain_grace", {{"in_flight", calls.in_flight()}});
  constexpr auto kPoll = std::chrono::milliseconds(20);  // `hurry` reads a signal's flag
  const auto grace_end = Clock::now() + ToChrono(config_.drain_grace);
  while (Clock::now() < grace_end && !hurry()) std::this_thread::sleep_for(kPoll);

  calls.Close();
  Log(LogLevel::kInfo, "drain_refuse", {{"in_flight", calls.in_flight()}});
  const bool finished = calls.WaitUntilEmpty(Clock::now() + ToChrono(config_.drain_limit), hurry);
  if (!finished) {
    Log(LogLevel::kWarn, "drain_cancel", {{"in_flight", calls.in_flight()}});
    calls.AbortAll(WithReason(
        absl::UnavailableError("the server stopped before this call was done: use another one"),
        kReasonDraining));
    calls.WaitUntilEmpty(Clock::now() + kForcedEnd, [] { return false; });
  }
  return finished;
}

}  // namespace crout
