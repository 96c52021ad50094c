// What every call works with.
#ifndef CROUT_SERVER_RPC_CORE_H_
#define CROUT_SERVER_RPC_CORE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "kernels/memory.h"
#include "kernels/util/thread_pool.h"
#include "server/cache/factor_cache.h"
#include "server/metrics/metrics.h"
#include "server/rpc/call_registry.h"
#include "server/scheduling/device_pool.h"

namespace crout {

// Limits that a request is checked against.
struct Limits {
  int64_t max_n = 131072;
  size_t max_message_bytes = size_t{16} << 20;
  size_t reply_chunk_bytes = size_t{1} << 20;
  absl::Duration default_lease = absl::Hours(1);
  absl::Duration max_lease = absl::Hours(24 * 7);
  absl::Duration upload_idle_timeout = absl::Seconds(30);
  size_t queue_capacity = 256;
};

// References to the daemon's parts; all outlive every call, and are thread-safe.
struct ServerCore {
  Limits limits;
  DevicePool& devices;
  FactorCache& cache;
  Metrics& metrics;
  CallRegistry& calls;
  // Host memory for replies and text uploads, under DevicePool::host_budget().
  MemoryResource& host_memory;
  // Work that may block: evictions, large allocations, the end of text uploads.
  ThreadPool& blocking;
  // What never waits for a job or for memory: gives back what ended calls held, and resumes
  // uploads.
  ThreadPool& releasing;
  // Parses text.
  ThreadPool& parsers;
  absl::Time start_time;
  // Set by the daemon as soon as it is asked to stop.
  std::atomic<bool> draining = false;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CORE_H_
