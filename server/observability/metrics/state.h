// SPDX-License-Identifier: Apache-2.0

// A snapshot of the server's state, taken for each scrape. Gauges are set from it, so they never
// disagree with the state.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_STATE_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_STATE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/cache/cache_events.h"
#include "server/engine/store/store_state.h"
#include "server/observability/gpu/nvml.h"
#include "server/observability/metrics/labels.h"

namespace crout {

// State of one device. Sizes are in bytes.
struct DeviceState {
  int64_t budget_bytes = 0;       // the limit for Crout
  int64_t reserved_bytes = 0;     // by jobs and cached factors, at most the budget
  int64_t pool_used_bytes = 0;    // allocated from the pool
  int64_t pool_cached_bytes = 0;  // cached in the pool for reuse
  int64_t driver_used_bytes = 0;  // used by all processes, according to the driver or the system
  double memory_age_seconds = 0;  // age of the pool and driver values
  int64_t queue_depth = 0;        // jobs waiting for a stream
  int64_t preparing_depth = 0;    // parsed matrices waiting for assembly and analysis
  int64_t admitting_depth = 0;    // calls waiting for memory, or for the copy of a factor
  int64_t storing_depth = 0;      // calls waiting for the file of a durable factor
  int64_t releasing_depth = 0;    // calls and factors whose memory is waiting to be freed
  int64_t streams = 0;            // most jobs that can run at the same time
  int64_t streams_busy = 0;
  bool healthy = true;            // false: fenced
  std::optional<GpuReading> gpu;  // empty: not a GPU, or no reading yet
};

// Load of one configured tenant, or of all others. Sizes are in bytes.
struct TenantState {
  std::string tenant;  // "other" for the sum of all others
  int64_t calls = 0;
  int64_t factors = 0;
  int64_t device_bytes = 0;  // cached factors on devices
  int64_t host_bytes = 0;    // cached factors in host memory
  int64_t store_bytes = 0;   // cached factors in the store
  int64_t pinned_bytes = 0;
  int64_t bytes_in_flight = 0;  // memory of jobs and uploads
  int64_t queued_jobs = 0;
  int64_t running_jobs = 0;
  double device_seconds = 0;  // used by ended jobs, since the start
  double refusals = 0;        // calls refused because of a quota, since the start
};

struct ServerState {
  std::vector<DeviceState> devices;  // in the order of MetricsOptions::devices
  std::vector<TenantState> tenants;  // configured ones and "other"; empty if none is configured
  TierStates cache;
  size_t pinned_bytes = 0;           // size of the pinned factors
  TierState device_copies;           // copies of factors on other GPUs, not part of `cache`
  std::optional<StoreState> store;   // unset: the server has no store
  int64_t host_memory_limit = 0;     // host budget, in bytes
  int64_t host_memory_reserved = 0;  // reserved by jobs, factors, text and replies
  int64_t call_memory_limit = 0;     // memory for the calls themselves, in bytes
  int64_t call_memory_reserved = 0;  // reserved by calls
  int64_t releasing_depth = 0;       // calls without a device whose memory is waiting to be freed
  int64_t parsing_depth = 0;         // text segments waiting to be parsed
  uint64_t log_lines_dropped = 0;    // since the process started
  uint64_t handshakes_failed = 0;    // TLS handshakes of gRPC, since the process started
  uint64_t abandoned_tasks = 0;      // ended by a lack of memory, since the process started
  uint64_t traces_exported = 0;      // calls, since the process started
  std::array<uint64_t, kTraceDropNames.size()> traces_dropped = {};  // calls, by TraceDrop
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_STATE_H_
