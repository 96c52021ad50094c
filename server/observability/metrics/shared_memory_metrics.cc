// SPDX-License-Identifier: Apache-2.0

#include "server/observability/metrics/shared_memory_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

namespace crout {
namespace {

prometheus::Counter* AddCounter(prometheus::Registry& registry, const char* name,
                                const char* help) {
  return &prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

}  // namespace

SharedMemoryMetrics::SharedMemoryMetrics(prometheus::Registry& registry)
    : received_bytes_(AddCounter(registry, "crout_shared_memory_received_bytes_total",
                                 "Payload bytes received in shared memory.")),
      sent_bytes_(AddCounter(registry, "crout_shared_memory_sent_bytes_total",
                             "Payload bytes sent in shared memory.")),
      refused_(AddCounter(registry, "crout_shared_memory_refused_total",
                          "Connections to memory sockets, and offers of memory, refused.")),
      regions_(&prometheus::BuildGauge()
                    .Name("crout_shared_memory_regions")
                    .Help("Regions of memory that clients share.")
                    .Register(registry)
                    .Add({})) {
  auto& bytes = prometheus::BuildGauge()
                    .Name("crout_shared_memory_bytes")
                    .Help(
                        "Memory that clients share: host memory in use, registered with GPUs, and "
                        "the limit (--max-shared-memory); memory of GPUs in use, and the limit of "
                        "each (--max-shared-device-memory).")
                    .Register(registry);
  used_bytes_ = &bytes.Add({{"kind", "used"}});
  registered_bytes_ = &bytes.Add({{"kind", "registered"}});
  limit_bytes_ = &bytes.Add({{"kind", "limit"}});
  gpu_bytes_ = &bytes.Add({{"kind", "gpu_used"}});
  gpu_limit_bytes_ = &bytes.Add({{"kind", "gpu_limit"}});
}

void SharedMemoryMetrics::CountReceived(size_t bytes) {
  received_bytes_->Increment(static_cast<double>(bytes));
}

void SharedMemoryMetrics::CountSent(size_t bytes) {
  sent_bytes_->Increment(static_cast<double>(bytes));
}

void SharedMemoryMetrics::Set(const SharedRegions::Totals& totals, uint64_t refused) {
  regions_->Set(static_cast<double>(totals.regions));
  used_bytes_->Set(static_cast<double>(totals.bytes));
  registered_bytes_->Set(static_cast<double>(totals.registered_bytes));
  limit_bytes_->Set(static_cast<double>(totals.limit));
  gpu_bytes_->Set(static_cast<double>(totals.device_bytes));
  gpu_limit_bytes_->Set(static_cast<double>(totals.device_limit));
  refused_->Increment(static_cast<double>(refused) - refused_->Value());
}

}  // namespace crout
