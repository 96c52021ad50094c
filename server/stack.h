// SPDX-License-Identifier: Apache-2.0

// Everything behind the listening sockets, in the order in which it depends on each other.
#ifndef CROUT_SERVER_STACK_H_
#define CROUT_SERVER_STACK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/memory/caching_resource.h"
#include "kernels/util/thread_pool.h"
#include "server/config.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/scheduling/device_pool.h"
#include "server/memory_return.h"
#include "server/observability/gpu/gpu_monitor.h"
#include "server/observability/metrics/metrics.h"
#include "server/observability/trace/trace_exporter.h"
#include "server/rpc/call_gatherer.h"
#include "server/rpc/call_log.h"
#include "server/rpc/call_registry.h"
#include "server/rpc/core.h"
#include "server/rpc/service.h"

namespace crout {

// Parts are thread-safe. On destruction no call is in flight.
class Stack {
 public:
  static absl::StatusOr<std::unique_ptr<Stack>> Create(std::vector<std::unique_ptr<Device>> devices,
                                                       const Config& config);
  ~Stack();
  Stack(const Stack&) = delete;  // Its parts point to each other.
  Stack& operator=(const Stack&) = delete;

  ServerCore& core() { return *core_; }
  // As of now. Waits for the locks of the cache and of schedulers.
  ServerState State() const;
  FactorizationService& service() { return *service_; }

  // Reads anew who may call. Ends leases that are over and calls whose clients stopped sending or
  // reading or may no longer call, gives memory back that an idle daemon keeps, and logs that
  // memory lacked; every second or so, by one thread. What it lacks memory for comes again.
  void Housekeep();

 private:
  explicit Stack(const Config& config)
      : call_log_(config.call_log),
        connections_(config.abandon),
        memory_return_(config.return_memory_after, [this] { ReturnMemory(); }) {}
  // Leaves at most `bytes` of free blocks in the pools of host memory.
  void Trim(size_t bytes);
  Activity CurrentActivity() const;
  // All free host memory, of the pools and of the heap, to the system.
  void ReturnMemory();

  std::unique_ptr<DevicePool> devices_;
  std::unique_ptr<CachingResource> host_memory_;
  std::unique_ptr<Metrics> metrics_;
  TenantLoads tenant_loads_;
  std::unique_ptr<FactorCache> cache_;
  CallLog call_log_;
  RecentWork recent_work_;
  AnalysisStore analyses_;
  std::unique_ptr<TraceExporter> traces_;  // null: they go nowhere
  CallRegistry calls_;
  ConnectionCalls connections_;
  std::unique_ptr<MemoryBudget> call_memory_;
  std::unique_ptr<PeerShares> call_shares_;
  std::unique_ptr<MemoryBudget> refused_memory_;
  std::unique_ptr<IdentityKeeper> identities_;  // null: nobody is asked who they are
  std::unique_ptr<ThreadPool> parsers_;
  std::unique_ptr<ThreadPool> releasing_;
  std::unique_ptr<CallGatherer> gatherer_;
  std::unique_ptr<ServerCore> core_;
  std::unique_ptr<FactorizationService> service_;
  MemoryReturn memory_return_;
  std::unique_ptr<GpuMonitor> gpus_;
  uint64_t times_without_memory_ = 0;  // that the log knows
};

}  // namespace crout

#endif  // CROUT_SERVER_STACK_H_
