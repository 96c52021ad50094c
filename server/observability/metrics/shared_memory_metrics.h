// SPDX-License-Identifier: Apache-2.0

// Metrics of the memory that clients share with the server.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_SHARED_MEMORY_METRICS_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_SHARED_MEMORY_METRICS_H_

#include <cstddef>
#include <cstdint>

#include "server/engine/upload/shared_region.h"

namespace prometheus {
class Counter;
class Gauge;
class Registry;
}  // namespace prometheus

namespace crout {

// The series start at zero. Thread-safe.
class SharedMemoryMetrics {
 public:
  explicit SharedMemoryMetrics(prometheus::Registry& registry);

  // Count payload bytes that were read from and written to shared memory.
  void CountReceived(size_t bytes);
  void CountSent(size_t bytes);
  // Sets the current regions, and the number of refused connections and offers since the start.
  void Set(const SharedRegions::Totals& totals, uint64_t refused);

 private:
  prometheus::Counter* received_bytes_;
  prometheus::Counter* sent_bytes_;
  prometheus::Counter* refused_;
  prometheus::Gauge* regions_;
  prometheus::Gauge* used_bytes_;
  prometheus::Gauge* registered_bytes_;
  prometheus::Gauge* limit_bytes_;
  prometheus::Gauge* gpu_bytes_;
  prometheus::Gauge* gpu_limit_bytes_;
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_SHARED_MEMORY_METRICS_H_
