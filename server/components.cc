// SPDX-License-Identifier: Apache-2.0

#include "server/components.h"

#ifdef CROUT_HAVE_TCMALLOC
#include <gperftools/malloc_extension_c.h>
#endif

#include <algorithm>
#include <chrono>
#include <utility>

#include "kernels/host/device/host_info.h"
#include "kernels/host/device/host_memory.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "server/observability/log/log.h"
#include "server/rpc/codec/names.h"
#include "server/tenant_states.h"

namespace crout {
namespace {

// These threads never wait for a device. Work that may wait for a device runs on the threads of its
// DeviceSlot.
constexpr int kReleasingThreads = 2;
// Concurrent transfers with an object store, whose requests take much longer than those of a disk.
constexpr int kBucketThreads = 8;
// Memory for refused calls: 1/kRefusedShare of the call memory, in addition to it.
constexpr size_t kRefusedShare = 4;
// Most bytes of free blocks that are kept for the next replies and text.
constexpr size_t kCachedHostBytes = size_t{256} << 20;

MetricsOptions MetricsOptionsFor(const DevicePool& pool) {
  MetricsOptions options;
  for (const auto& slot : pool.slots()) {
    options.devices.push_back({.name = slot->device->info().name,
                               .algorithms = slot->device->catalogue().algorithm_traits(),
                               .solvers = slot->device->catalogue().solver_traits()});
  }
  options.cuda = "none";
#ifdef CROUT_CUDA_VERSION
  for (const auto& slot : pool.slots()) {
    if (slot->device->info().kind == DeviceKind::kCuda) options.cuda = CROUT_CUDA_VERSION;
  }
#endif
  return options;
}

std::vector<GpuMonitor::Gpu> GpusOf(const DevicePool& pool) {
  std::vector<GpuMonitor::Gpu> gpus;
  for (const auto& slot : pool.slots()) {
    gpus.push_back({slot->device->info().name, slot->device->info().pci_bus_id});
  }
  return gpus;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerComponents>> ServerComponents::Create(
    std::vector<std::shared_ptr<Device>> devices, const Config& config,
    StorageOpener open_storage) {
  for (const auto& device : devices) CROUT_RETURN_IF_ERROR(CheckNames(device->catalogue()));
  std::unique_ptr<ServerComponents> components(new ServerComponents(config));
  if (!config.quotas_file.empty()) {
    CROUT_ASSIGN_OR_RETURN(components->quota_reloader_,
                           QuotaReloader::Create(config.quotas_file, components->quotas_));
  }
  DevicePoolOptions pool = config.pool;
  pool.scheduler.quotas = &components->quotas_;
  CROUT_ASSIGN_OR_RETURN(components->devices_, DevicePool::Create(std::move(devices), pool));
  components->host_memory_ =
      std::make_unique<CachingResource>(std::make_unique<host::HostMemory>(), kCachedHostBytes);
  components->devices_->host_budget().SetTrim(
      [components = components.get()](size_t free) { components->Trim(free); });
  components->call_memory_ = std::make_unique<MemoryBudget>(config.call_memory_bytes);
  components->call_shares_ = std::make_unique<PeerShares>(*components->call_memory_);
  CROUT_ASSIGN_OR_RETURN(TrustedProxies proxies, TrustedProxies::Parse(config.trusted_proxies));
  components->refused_memory_ =
      std::make_unique<MemoryBudget>(config.call_memory_bytes / kRefusedShare);
  if (!config.identities_file.empty()) {
    CROUT_ASSIGN_OR_RETURN(components->identities_,
                           IdentityReloader::Create(config.identities_file, config.signed_tokens));
  }
  components->gpus_ = std::make_unique<GpuMonitor>(GpusOf(*components->devices_));
  components->metrics_ = std::make_unique<Metrics>(MetricsOptionsFor(*components->devices_));
  if (!config.otlp_endpoint.empty()) {
    CROUT_ASSIGN_OR_RETURN(components->traces_, TraceExporter::Create(config.otlp_endpoint));
  }
  components->observer_ = std::make_unique<CallObserver>(
      config.call_log, *components->metrics_, components->recent_work_, components->traces_.get());
  std::vector<FoundFactor> found;
  SharedStore* shared = nullptr;
  if (!config.store_location.empty()) {
    CROUT_ASSIGN_OR_RETURN(Storage storage, open_storage(config));
    shared = storage.shared;
    FactorStoreOptions options = config.store;
    if (shared != nullptr) options.threads = kBucketThreads;
    CROUT_ASSIGN_OR_RETURN(components->files_,
                           FactorStore::Open(std::move(storage.objects), options, &found));
  }
  components->cache_ = std::make_unique<FactorCache>(
      components->devices_.get(), components->host_memory_.get(), components->metrics_.get(),
      &components->tenant_loads_, &components->quotas_, config.max_pinned_bytes,
      components->files_.get());
  components->cache_->Restore(std::move(found), components->analyses_);
  if (shared != nullptr) {
    components->folder_homes_ = std::make_unique<FolderHomes>(shared->leases());
    components->folder_watch_ =
        std::make_unique<FolderWatch>(*shared, *components->folder_homes_, *components->files_,
                                      *components->cache_, components->analyses_);
  }
  components->shared_regions_ = std::make_unique<SharedRegions>(
      *components->cache_, *components->devices_, config.max_shared_memory_bytes);
  const int cores = config.host_threads > 0 ? config.host_threads : host::AvailableCores();
  components->parsers_ = std::make_unique<ThreadPool>(cores);
  components->releasing_ = std::make_unique<ThreadPool>(kReleasingThreads);
  components->job_metrics_ =
      std::make_unique<JobMetrics>(*components->metrics_, components->recent_work_);
  components->batcher_ =
      std::make_unique<DynamicBatcher>(*components->job_metrics_, *components->host_memory_);
  EngineLimits limits = config.limits;
  limits.staging_timeout = config.limits.transfer.idle_timeout;
  components->core_.reset(new ServerCore{.limits = config.limits,
                                         .engine = {.limits = limits,
                                                    .devices = *components->devices_,
                                                    .cache = *components->cache_,
                                                    .analyses = components->analyses_,
                                                    .tenant_loads = components->tenant_loads_,
                                                    .quotas = components->quotas_,
                                                    .events = *components->job_metrics_,
                                                    .batcher = *components->batcher_,
                                                    .host_memory = *components->host_memory_,
                                                    .parsers = *components->parsers_},
                                         .metrics = *components->metrics_,
                                         .observer = *components->observer_,
                                         .calls = components->calls_,
                                         .connections = components->connections_,
                                         .call_memory = *components->call_memory_,
                                         .call_shares = *components->call_shares_,
                                         .shared_regions = *components->shared_regions_,
                                         .trusted_proxies = std::move(proxies),
                                         .refused_memory = *components->refused_memory_,
                                         .identities = components->identities_.get(),
                                         .homes = components->folder_homes_.get(),
                                         .releasing = *components->releasing_,
                                         .start_time = absl::Now()});
  components->service_ = MakeFactorizationService(*components->core_);
  components->metrics_->SetStateSource(
      [components = components.get()] { return components->State(); });
  return components;
}

ServerComponents::~ServerComponents() {
  if (metrics_ != nullptr) metrics_->SetStateSource(nullptr);
  // Jobs that outlived their calls still use the cache and the pools.
  if (devices_ != nullptr) devices_->Stop();
  releasing_.reset();
  parsers_.reset();
  shared_regions_.reset();
}

void ServerComponents::Trim(size_t bytes) {
  size_t kept = host_memory_->TrimTo(bytes);
  for (const auto& slot : devices_->slots()) {
    if (slot->on_host()) kept += slot->device->memory().TrimTo(bytes - std::min(bytes, kept));
  }
}

Activity ServerComponents::CurrentActivity() const {
  Activity activity;
  activity.calls = calls_.entered();
  activity.in_flight = calls_.in_flight();
  for (const auto& slot : devices_->slots()) {
    const DeviceScheduler::Load load = slot->scheduler->load();
    activity.jobs += load.streams_busy + static_cast<int64_t>(load.queue_depth);
  }
  activity.reserved = devices_->host_budget().reserved();
  return activity;
}

std::set<std::string> ServerComponents::ConfiguredTenants() const {
  std::set<std::string> names;
  for (const auto& [name, limits] : quotas_.table().tenants) names.insert(name);
  if (identities_ == nullptr) return names;
  for (const Identity& identity : identities_->current()->all()) {
    names.insert(identity.tenants.begin(), identity.tenants.end());
  }
  return names;
}

void ServerComponents::ReturnMemory() {
  Trim(0);
#ifdef CROUT_HAVE_TCMALLOC
  MallocExtension_ReleaseFreeMemory();  // holds the lock of the heap for milliseconds
#endif
}

void ServerComponents::Housekeep() {
  AbandonOnBadAlloc([this] {
    if (identities_ == nullptr) return;
    identities_->Refresh();
    const FileState state = identities_->state();
    metrics_->SetWatchedFile(WatchedFile::kIdentities, state.read_time, state.refused);
    const std::optional<FileState> keys = identities_->keys_state();
    if (keys) metrics_->SetWatchedFile(WatchedFile::kTokenKeys, keys->read_time, keys->refused);
  });
  AbandonOnBadAlloc([this] {
    if (quota_reloader_ == nullptr) return;
    quota_reloader_->Refresh();
    const FileState state = quota_reloader_->state();
    metrics_->SetWatchedFile(WatchedFile::kQuotas, state.read_time, state.refused);
  });
  quotas_.Sweep();
  AbandonOnBadAlloc([this] { cache_->Sweep(); });
  AbandonOnBadAlloc([this] { calls_.EnforceLimits(SteadyNow()); });
  connections_.Housekeep(SteadyNow());
  AbandonOnBadAlloc([this] { memory_return_.Observe(CurrentActivity(), SteadyNow()); });
  AbandonOnBadAlloc([this] {
    const uint64_t tasks = AbandonedTasks();
    if (tasks == logged_abandoned_tasks_) return;
    Log(LogLevel::kError, "memory_ran_out", {{"tasks", tasks - logged_abandoned_tasks_}});
    logged_abandoned_tasks_ = tasks;
  });
}

ServerState ServerComponents::State() const {
  ServerState state;
  const std::vector<std::optional<GpuReading>> gpus = gpus_->last();
  for (const auto& slot : devices_->slots()) {
    const DeviceScheduler::Load load = slot->scheduler->load();
    const MemoryWatch::Reading reading = slot->memory_watch->last();
    const DeviceMemoryStats& memory = reading.stats;
    const std::chrono::duration<double> age = SteadyNow() - reading.start;
    DeviceState device;
    device.budget_bytes = static_cast<int64_t>(slot->budget->limit());
    device.reserved_bytes = static_cast<int64_t>(slot->budget->reserved());
    device.pool_used_bytes = static_cast<int64_t>(memory.pool_used_bytes);
    device.pool_cached_bytes = static_cast<int64_t>(memory.pool_cached_bytes);
    device.driver_used_bytes = static_cast<int64_t>(memory.driver_used_bytes);
    device.memory_age_seconds = age.count();
    device.queue_depth = static_cast<int64_t>(load.queue_depth);
    device.preparing_depth = static_cast<int64_t>(slot->preparing->load().queue_depth);
    device.admitting_depth = static_cast<int64_t>(slot->admitting->load().queue_depth);
    device.storing_depth = static_cast<int64_t>(slot->storing->load().queue_depth);
    device.releasing_depth = static_cast<int64_t>(slot->releasing->waiting());
    device.streams = load.streams;
    device.streams_busy = load.streams_busy;
    device.healthy = slot->device->healthy();
    device.gpu = gpus[state.devices.size()];
    state.devices.push_back(device);
  }
  state.tenants = TenantStates(core_->engine, ConfiguredTenants());
  state.cache = cache_->tiers();
  state.pinned_bytes = cache_->pinned_bytes();
  state.device_copies = cache_->copies();
  state.store = cache_->store_state();
  if (folder_homes_ != nullptr) state.store->folders = folder_homes_->counts();
  const MemoryBudget& host_budget = devices_->host_budget();
  state.host_memory_limit = static_cast<int64_t>(host_budget.limit());
  state.host_memory_reserved = static_cast<int64_t>(host_budget.reserved());
  state.call_memory_limit = static_cast<int64_t>(call_memory_->limit());
  state.call_memory_reserved = static_cast<int64_t>(call_memory_->reserved());
  state.releasing_depth = static_cast<int64_t>(releasing_->waiting());
  state.parsing_depth = static_cast<int64_t>(parsers_->waiting());
  state.log_lines_dropped = DroppedLogLines();
  state.handshakes_failed = FailedHandshakes();
  state.abandoned_tasks = AbandonedTasks();
  if (traces_ != nullptr) {
    state.traces_exported = traces_->exported();
    for (size_t i = 0; i < state.traces_dropped.size(); ++i) {
      state.traces_dropped[i] = traces_->dropped(static_cast<TraceDrop>(i));
    }
  }
  return state;
}

}  // namespace crout
