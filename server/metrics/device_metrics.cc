#include "server/metrics/device_metrics.h"

#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "server/metrics/buckets.h"

namespace crout {
namespace {

// The registry merges families of one name: each device adds its children to the same family.
prometheus::Gauge* AddGauge(prometheus::Registry& registry, const char* name, const char* help,
                            const prometheus::Labels& labels) {
  return &prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
}

prometheus::Gauge* AddMemory(prometheus::Registry& registry, const std::string& device,
                             const char* kind) {
  return AddGauge(registry, "crout_device_memory_bytes",
                  "Memory of a device: its budget, what of it is reserved, the pool's blocks in "
                  "use and kept, and what the driver says is in use by anyone.",
                  {{"device", device}, {"kind", kind}});
}

}  // namespace

DeviceMetrics::DeviceMetrics(prometheus::Registry& registry, const DeviceLabels& labels)
    : budget_(AddMemory(registry, labels.name, "budget")),
      reserved_(AddMemory(registry, labels.name, "reserved")),
      pool_used_(AddMemory(registry, labels.name, "pool_used")),
      pool_cached_(AddMemory(registry, labels.name, "pool_cached")),
      driver_used_(AddMemory(registry, labels.name, "driver_used")),
      memory_age_(AddGauge(registry, "crout_device_memory_age_seconds",
                           "Time since a device last said what of its pool and of its memory is in "
                           "use.",
                           {{"device", labels.name}})),
      queue_depth_(AddGauge(registry, "crout_queue_depth", "Jobs waiting for a device.",
                            {{"device", labels.name}})),
      streams_(AddGauge(registry, "crout_streams", "Jobs that a device runs side by side.",
                        {{"device", labels.name}})),
      streams_busy_(AddGauge(registry, "crout_streams_busy", "Jobs running on a device.",
                             {{"device", labels.name}})),
      healthy_(AddGauge(registry, "crout_device_healthy",
                        "1 for a device that serves, 0 for one that is fenced.",
                        {{"device", labels.name}})) {
  auto& factor = prometheus::BuildHistogram()
                     .Name("crout_factor_duration_seconds")
                     .Help("Time of a factorization on its device, by the order of the matrix.")
                     .Register(registry);
  auto& solve = prometheus::BuildHistogram()
                    .Name("crout_solve_duration_seconds")
                    .Help("Time of a triangular solve on its device, by the order of the matrix.")
                    .Register(registry);
  auto add = [&](LazyHistogram::Family& family, const char* label, const MethodTraits& method) {
    Durations durations{.name = std::string(method.name), .histograms = {}};
    for (const DType dtype : kDTypes) {
      for (size_t size = 0; size < kSizeClassNames.size(); ++size) {
        durations.histograms[static_cast<size_t>(dtype)][size] = std::make_unique<LazyHistogram>(
            family,
            LazyHistogram::Labels{{label, durations.name},
                                  {"device", labels.name},
                                  {"dtype", std::string(NameOf(dtype))},
                                  {"size_class", std::string(kSizeClassNames[size])}},
            KernelBuckets);
      }
    }
    return durations;
  };
  for (const MethodTraits& method : labels.algorithms) {
    factor_.push_back(add(factor, "algorithm", method));
  }
  for (const MethodTraits& method : labels.solvers) {
    solve_.push_back(add(solve, "solver", method));
  }
  const LazyHistogram::Labels device = {{"device", labels.name}};
  gathered_calls_ = std::make_unique<LazyHistogram>(
      prometheus::BuildHistogram()
          .Name("crout_gathered_calls")
          .Help("Small calls that ran together as one batch on a device; those in the first bucket "
                "were alone.")
          .Register(registry),
      device, CountBuckets);
  gather_wait_ = std::make_unique<LazyHistogram>(
      prometheus::BuildHistogram()
          .Name("crout_gather_wait_seconds")
          .Help("Time for which a device's idle stream let a batch wait for company.")
          .Register(registry),
      device, LatencyBuckets);
}

// At most fourteen names: a linear search costs less than a hash.
void DeviceMetrics::Observe(std::vector<Durations>& durations, std::string_view name, DType dtype,
                            int64_t n, double seconds) {
  for (Durations& entry : durations) {
    if (entry.name != name) continue;
    entry.histograms[static_cast<size_t>(dtype)][OrderClassOf(n)]->Observe(seconds);
    return;
  }
}

void DeviceMetrics::ObserveFactor(std::string_view algorithm, DType factor_dtype, int64_t n,
                                  double seconds) {
  Observe(factor_, algorithm, factor_dtype, n, seconds);
}

void DeviceMetrics::ObserveSolve(std::string_view solver, DType factor_dtype, int64_t n,
                                 double seconds) {
  Observe(solve_, solver, factor_dtype, n, seconds);
}

void DeviceMetrics::ObserveGathered(size_t calls, double waited_seconds) {
  gathered_calls_->Observe(static_cast<double>(calls));
  gather_wait_->Observe(waited_seconds);
}

void DeviceMetrics::Set(const DeviceState& state) {
  budget_->Set(static_cast<double>(state.budget_bytes));
  reserved_->Set(static_cast<double>(state.reserved_bytes));
  pool_used_->Set(static_cast<double>(state.pool_used_bytes));
  pool_cached_->Set(static_cast<double>(state.pool_cached_bytes));
  driver_used_->Set(static_cast<double>(state.driver_used_bytes));
  memory_age_->Set(state.memory_age_seconds);
  queue_depth_->Set(static_cast<double>(state.queue_depth));
  streams_->Set(static_cast<double>(state.streams));
  streams_busy_->Set(static_cast<double>(state.streams_busy));
  healthy_->Set(state.healthy ? 1 : 0);
}

}  // namespace crout
