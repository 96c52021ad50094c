// SPDX-License-Identifier: Apache-2.0

// The server components behind the listening sockets, constructed in dependency order.
#ifndef CROUT_SERVER_COMPONENTS_H_
#define CROUT_SERVER_COMPONENTS_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/memory/caching_resource.h"
#include "kernels/util/thread_pool.h"
#include "server/config.h"
#include "server/engine/batching/dynamic_batcher.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/scheduling/device_pool.h"
#include "server/engine/store/factor_store.h"
#include "server/engine/upload/shared_region.h"
#include "server/folder_watch.h"
#include "server/memory_return.h"
#include "server/observability/gpu/gpu_monitor.h"
#include "server/observability/job_metrics.h"
#include "server/observability/metrics/metrics.h"
#include "server/observability/trace/trace_exporter.h"
#include "server/quota_reloader.h"
#include "server/replicas/folder_homes.h"
#include "server/rpc/call_registry.h"
#include "server/rpc/core.h"
#include "server/rpc/service.h"
#include "server/storage.h"

namespace crout {

// The components are thread-safe. No call may be in flight at destruction.
class ServerComponents {
 public:
  using StorageOpener = absl::FunctionRef<absl::StatusOr<Storage>(const Config&)>;

  // Creates the components for `devices`. Returns the first error of a device, a file or a setting.
  // `open_storage` opens config.store_location, unless it is empty.
  static absl::StatusOr<std::unique_ptr<ServerComponents>> Create(
      std::vector<std::shared_ptr<Device>> devices, const Config& config,
      StorageOpener open_storage = OpenStorage);
  ~ServerComponents();
  ServerComponents(const ServerComponents&) = delete;  // The components point to each other.
  ServerComponents& operator=(const ServerComponents&) = delete;

  ServerCore& core() { return *core_; }
  // Returns the current state. Acquires the locks of the cache and of the schedulers.
  ServerState State() const;
  grpc::Service& service() { return *service_; }

  // Reloads the identities and the quotas. Ends expired leases. Ends calls whose clients stopped
  // sending or reading, or are no longer authorized. Returns memory that an idle daemon caches.
  // Logs memory shortages. A step that fails for lack of memory is tried again by the next call.
  // Call it about once a second, from one thread.
  void Housekeep();
  // Adopts no further folders of the shared store, if there is one. For a daemon that is stopping.
  void StopAdoptions() {
    if (folder_watch_ != nullptr) folder_watch_->StopAdoptions();
  }

 private:
  explicit ServerComponents(const Config& config)
      : connections_(config.abandon),
        memory_return_(config.return_memory_after, [this] { ReturnMemory(); }) {}
  // Frees blocks in the pools of host memory until at most `bytes` of free blocks remain.
  void Trim(size_t bytes);
  Activity CurrentActivity() const;
  // Returns the tenants in the files of identities and quotas.
  std::set<std::string> ConfiguredTenants() const;
  // Returns all free host memory of the pools and of the heap to the system.
  void ReturnMemory();

  Quotas quotas_;
  std::unique_ptr<QuotaReloader> quota_reloader_;  // null: tenants have no quotas
  std::unique_ptr<DevicePool> devices_;
  std::unique_ptr<CachingResource> host_memory_;
  std::unique_ptr<Metrics> metrics_;
  TenantLoads tenant_loads_;
  AnalysisStore analyses_;
  std::unique_ptr<FactorStore> files_;  // null: the server has no store
  std::unique_ptr<FactorCache> cache_;
  std::unique_ptr<FolderHomes> folder_homes_;  // null: no other daemon shares the store
  std::unique_ptr<FolderWatch> folder_watch_;  // null: like folder_homes_
  RecentWork recent_work_;
  std::unique_ptr<JobMetrics> job_metrics_;
  std::unique_ptr<TraceExporter> traces_;  // null: traces are not exported
  std::unique_ptr<CallObserver> observer_;
  CallRegistry calls_;
  ConnectionCalls connections_;
  std::unique_ptr<SharedRegions> shared_regions_;
  std::unique_ptr<MemoryBudget> call_memory_;
  std::unique_ptr<PeerShares> call_shares_;
  std::unique_ptr<MemoryBudget> refused_memory_;
  std::unique_ptr<IdentityReloader> identities_;  // null: callers are not authenticated
  std::unique_ptr<ThreadPool> parsers_;
  std::unique_ptr<ThreadPool> releasing_;
  std::unique_ptr<DynamicBatcher> batcher_;
  std::unique_ptr<ServerCore> core_;
  std::unique_ptr<grpc::Service> service_;
  MemoryReturn memory_return_;
  std::unique_ptr<GpuMonitor> gpus_;
  uint64_t logged_abandoned_tasks_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_COMPONENTS_H_
