// SPDX-License-Identifier: Apache-2.0

// What gauges show: a snapshot of the server's state, taken anew for each scrape, so that a gauge
// never disagrees with what it mirrors.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_STATE_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_STATE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/observability/gpu/gpu_reading.h"
#include "server/observability/metrics/labels.h"

namespace crout {

// Of one device. Bytes unless another unit is named.
struct DeviceState {
  int64_t budget_bytes = 0;       // what Crout may use
  int64_t reserved_bytes = 0;     // by jobs and cached factors, at most the budget
  int64_t pool_used_bytes = 0;    // of the pool: handed out
  int64_t pool_cached_bytes = 0;  // of the pool: kept for reuse
  int64_t driver_used_bytes = 0;  // of the device, by anyone, as its driver (or system) says
  double memory_age_seconds = 0;  // of what the pool and the driver say
  int64_t queue_depth = 0;        // jobs waiting for a stream
  int64_t preparing_depth = 0;    // parsed matrices waiting to be assembled and analysed
  int64_t admitting_depth = 0;    // calls waiting for memory, or for a copy of a factor
  int64_t releasing_depth = 0;    // calls and factors whose memory waits to be freed
  int64_t streams = 0;            // jobs that can run side by side
  int64_t streams_busy = 0;
  bool healthy = true;            // false: fenced
  std::optional<GpuReading> gpu;  // nothing: not a GPU, or no driver that tells
};

struct TierState {
  int64_t entries = 0;
  int64_t bytes = 0;
};

struct ServerState {
  std::vector<DeviceState> devices;  // in the order of MetricsOptions::devices
  std::array<TierState, 2> cache;    // indexed by Tier
  int64_t host_memory_limit = 0;     // bytes of the host's budget,
  int64_t host_memory_reserved = 0;  // and those of it that jobs, factors, text and replies hold
  int64_t call_memory_limit = 0;     // bytes for calls themselves,
  int64_t call_memory_reserved = 0;  // and those that they take
  int64_t releasing_depth = 0;       // calls without a device whose memory waits to be freed
  int64_t parsing_depth = 0;         // segments of texts
  uint64_t log_lines_dropped = 0;    // since the process began
  uint64_t handshakes_failed = 0;    // likewise, of gRPC's TLS
  uint64_t work_without_memory = 0;  // likewise
  uint64_t traces_exported = 0;      // calls of them, likewise
  std::array<uint64_t, kTraceDropNames.size()> traces_dropped = {};  // likewise, by TraceDrop
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_STATE_H_
