#include "server/daemon.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_builder.h"
#include "kernels/host/host_memory.h"
#include "kernels/util/status_macros.h"
#include "server/devices.h"
#include "server/scheduling/reason.h"

namespace crout {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kHousekeepingPeriod = std::chrono::seconds(1);
// Threads that wait for evictions, large allocations and the end of text uploads.
constexpr int kBlockingThreads = 4;
// Host memory kept warm for replies and text.
constexpr size_t kCachedHostBytes = size_t{256} << 20;
// How long answered calls may take to leave once they were told to.
constexpr auto kForcedEnd = std::chrono::seconds(5);

std::vector<std::string> NamesOf(const Device& device, bool solvers) {
  std::vector<std::string> names;
  if (solvers) {
    for (const auto& solver : device.solvers()) names.emplace_back(solver->name());
  } else {
    for (const auto& algorithm : device.algorithms()) {
      names.emplace_back(algorithm->traits().name);
    }
  }
  return names;
}

MetricsOptions MetricsOptionsFor(const DevicePool& pool) {
  MetricsOptions options;
  for (const auto& slot : pool.slots()) {
    options.devices.push_back({.name = slot->device->info().name,
                               .algorithms = NamesOf(*slot->device, false),
                               .solvers = NamesOf(*slot->device, true)});
  }
#ifdef CROUT_CUDA_VERSION
  options.cuda = CROUT_CUDA_VERSION;
#else
  options.cuda = "none";
#endif
  return options;
}

bool IsUnix(const std::string& address) { return absl::StartsWith(address, "unix:"); }

// "host:port" with the port that was bound instead of 0.
std::string WithPort(const std::string& address, int port) {
  if (IsUnix(address)) return address;
  return absl::StrCat(address.substr(0, address.rfind(':') + 1), port);
}

Clock::duration ToChrono(absl::Duration duration) { return absl::ToChronoNanoseconds(duration); }

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const Config& config) {
  std::unique_ptr<Daemon> daemon(new Daemon(config));
  CROUT_RETURN_IF_ERROR(daemon->Build());
  CROUT_RETURN_IF_ERROR(daemon->Bind());
  daemon->housekeeper_ = std::thread([daemon = daemon.get()] { daemon->HousekeepingLoop(); });
  daemon->SetServing(true);
  return daemon;
}

absl::Status Daemon::Build() {
  CROUT_ASSIGN_OR_RETURN(auto devices, OpenDevices(config_));
  CROUT_ASSIGN_OR_RETURN(pool_, DevicePool::Create(std::move(devices), config_.pool));
  host_memory_ =
      std::make_unique<CachingResource>(std::make_unique<HostMemory>(), kCachedHostBytes);
  metrics_ = std::make_unique<Metrics>(MetricsOptionsFor(*pool_));
  cache_ = std::make_unique<FactorCache>(pool_.get(), host_memory_.get(), metrics_.get());
  const int cores = config_.host_threads > 0
                        ? config_.host_threads
                        : static_cast<int>(std::thread::hardware_concurrency());
  parsers_ = std::make_unique<ThreadPool>(cores);
  blocking_ = std::make_unique<ThreadPool>(kBlockingThreads);
  core_.reset(new ServerCore{.limits = config_.limits,
                             .devices = *pool_,
                             .cache = *cache_,
                             .metrics = *metrics_,
                             .calls = calls_,
                             .host_memory = *host_memory_,
                             .blocking = *blocking_,
                             .parsers = *parsers_,
                             .start_time = absl::Now()});
  metrics_->SetStateSource([this] { return State(); });
  return absl::OkStatus();
}

absl::Status Daemon::Bind() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  const int max_message = static_cast<int>(config_.limits.max_message_bytes);
  builder.SetMaxReceiveMessageSize(max_message);
  builder.SetMaxSendMessageSize(max_message);
  // Two daemons on one port would share its calls, and a handle is known to one of them.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  std::vector<int> ports(config_.listen.size(), 0);
  for (size_t i = 0; i < config_.listen.size(); ++i) {
    builder.AddListeningPort(config_.listen[i], grpc::InsecureServerCredentials(), &ports[i]);
  }
  service_ = std::make_unique<FactorizationService>(*core_);
  builder.RegisterService(service_.get());
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
  CROUT_ASSIGN_OR_RETURN(endpoint_, MetricsEndpoint::Start(config_.metrics_listen, *metrics_));
  return absl::OkStatus();
}

Daemon::~Daemon() {
  if (metrics_ != nullptr) metrics_->SetStateSource(nullptr);
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
  }
  if (housekeeper_.joinable()) housekeeper_.join();
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now() + kForcedEnd);
    server_->Wait();
  }
  // Jobs that outlived their calls still use the cache and the pools.
  if (pool_ != nullptr) pool_->Stop();
  blocking_.reset();
  parsers_.reset();
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

ServerState Daemon::State() const {
  ServerState state;
  for (const auto& slot : pool_->slots()) {
    const DeviceScheduler::Load load = slot->scheduler->load();
    const DeviceMemoryStats memory = slot->device->memory_stats();
    DeviceState device;
    device.budget_bytes = static_cast<int64_t>(slot->budget->limit());
    device.reserved_bytes = static_cast<int64_t>(slot->budget->reserved());
    device.pool_used_bytes = static_cast<int64_t>(memory.pool_used_bytes);
    device.pool_cached_bytes = static_cast<int64_t>(memory.pool_cached_bytes);
    device.driver_used_bytes = static_cast<int64_t>(memory.driver_used_bytes);
    device.queue_depth = static_cast<int64_t>(load.queue_depth);
    device.streams = load.streams;
    device.streams_busy = load.streams_busy;
    device.healthy = slot->device->healthy();
    state.devices.push_back(device);
  }
  state.cache = cache_->tiers();
  return state;
}

void Daemon::Housekeep() {
  cache_->Sweep();
  calls_.AbortIdle(Clock::now() - ToChrono(config_.limits.upload_idle_timeout));
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
  core_->draining = true;
  SetServing(false);
  Log(LogLevel::kInfo, "drain_grace", {{"in_flight", calls_.in_flight()}});
  constexpr auto kPoll = std::chrono::milliseconds(20);  // `hurry` reads a signal's flag
  const auto grace_end = Clock::now() + ToChrono(config_.drain_grace);
  while (Clock::now() < grace_end && !hurry()) std::this_thread::sleep_for(kPoll);

  calls_.Close();
  Log(LogLevel::kInfo, "drain_refuse", {{"in_flight", calls_.in_flight()}});
  const bool finished = calls_.WaitUntilEmpty(Clock::now() + ToChrono(config_.drain_limit), hurry);
  if (!finished) {
    Log(LogLevel::kWarn, "drain_cancel", {{"in_flight", calls_.in_flight()}});
    calls_.AbortAll(WithReason(
        absl::UnavailableError("the server stopped before this call was done: use another one"),
        kReasonDraining));
    calls_.WaitUntilEmpty(Clock::now() + kForcedEnd, [] { return false; });
  }
  return finished;
}

}  // namespace crout
