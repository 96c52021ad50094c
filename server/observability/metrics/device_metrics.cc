// SPDX-License-Identifier: Apache-2.0

#include "server/observability/metrics/device_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <utility>

#include "server/observability/metrics/lazy_histogram.h"

namespace crout {
namespace {

// The registry merges families of the same name, so all devices share one family.
prometheus::Gauge* AddGauge(prometheus::Registry& registry, const char* name, const char* help,
                            const prometheus::Labels& labels) {
  return &prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
}

prometheus::Counter* AddCounter(prometheus::Registry& registry, const char* name, const char* help,
                                const prometheus::Labels& labels) {
  return &prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
}

prometheus::Gauge* AddMemory(prometheus::Registry& registry, const std::string& device,
                             const char* kind) {
  return AddGauge(registry, "crout_device_memory_bytes",
                  "Device memory: the budget, the reserved part of it, the pool blocks in use and "
                  "cached, and the memory in use by all processes according to the driver.",
                  {{"device", device}, {"kind", kind}});
}

LazyHistogram::Family& AddFamily(prometheus::Registry& registry, const char* name,
                                 const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

std::unique_ptr<LazyHistogram> AddHistogram(prometheus::Registry& registry, const char* name,
                                            const char* help, LazyHistogram::Labels labels,
                                            LazyHistogram::Buckets buckets) {
  return std::make_unique<LazyHistogram>(AddFamily(registry, name, help), std::move(labels),
                                         buckets);
}

std::unique_ptr<LazyHistogram> AddMembers(prometheus::Registry& registry, const std::string& device,
                                          const char* work) {
  return AddHistogram(registry, "crout_batch_members",
                      "Members per batch call, by work: factor or solve.",
                      {{"device", device}, {"work", work}}, MemberBuckets);
}

}  // namespace

prometheus::Gauge* AddQueueDepth(prometheus::Registry& registry, const std::string& device,
                                 const char* queue) {
  return AddGauge(
      registry, "crout_queue_depth",
      "Calls and tasks waiting in the queues of a device: run (for a stream), prepare (for the "
      "assembly and analysis of a parsed matrix), admit (for memory or a copy of a factor), "
      "release "
      "(memory to be freed). Device none: release, and parse (pieces of text).",
      {{"device", device}, {"queue", queue}});
}

DeviceMetrics::DeviceMetrics(prometheus::Registry& registry, const DeviceLabels& labels)
    : dynamic_batch_size_(
          AddHistogram(registry, "crout_dynamic_batch_size_requests",
                       "Small requests per dynamic batch on a device; 1: the request ran alone.",
                       {{"device", labels.name}}, CountBuckets)),
      dynamic_batch_delay_(
          AddHistogram(registry, "crout_dynamic_batch_delay_seconds",
                       "Time that a batch waited on an idle stream for more requests.",
                       {{"device", labels.name}}, LatencyBuckets)),
      batch_factored_(AddMembers(registry, labels.name, "factor")),
      batch_solved_(AddMembers(registry, labels.name, "solve")),
      batch_singular_(AddCounter(registry, "crout_batch_singular_members_total",
                                 "Singular members of factored batches.",
                                 {{"device", labels.name}})),
      series_inaccurate_(AddCounter(registry, "crout_series_inaccurate_total",
                                    "Series steps that missed the requested accuracy.",
                                    {{"device", labels.name}})),
      series_age_(
          AddHistogram(registry, "crout_series_factor_age_steps",
                       "Age of the factor at each series step, in steps since its factorization.",
                       {{"device", labels.name}}, CountBuckets)),
      budget_(AddMemory(registry, labels.name, "budget")),
      reserved_(AddMemory(registry, labels.name, "reserved")),
      pool_used_(AddMemory(registry, labels.name, "pool_used")),
      pool_cached_(AddMemory(registry, labels.name, "pool_cached")),
      driver_used_(AddMemory(registry, labels.name, "driver_used")),
      memory_age_(AddGauge(registry, "crout_device_memory_age_seconds",
                           "Time since the memory use of the device was last read.",
                           {{"device", labels.name}})),
      queue_depth_(AddQueueDepth(registry, labels.name, "run")),
      preparing_depth_(AddQueueDepth(registry, labels.name, "prepare")),
      admitting_depth_(AddQueueDepth(registry, labels.name, "admit")),
      storing_depth_(AddQueueDepth(registry, labels.name, "store")),
      releasing_depth_(AddQueueDepth(registry, labels.name, "release")),
      streams_(AddGauge(registry, "crout_streams", "Jobs that a device can run concurrently.",
                        {{"device", labels.name}})),
      streams_busy_(AddGauge(registry, "crout_streams_busy", "Jobs running on a device.",
                             {{"device", labels.name}})),
      healthy_(AddGauge(registry, "crout_device_healthy",
                        "1 if the device accepts jobs, 0 if it is fenced.",
                        {{"device", labels.name}})) {
  LazyHistogram::Family& factor_seconds =
      AddFamily(registry, "crout_factor_duration_seconds",
                "Time of a factorization on the device, by algorithm and order of the matrix.");
  for (const MethodTraits& method : labels.algorithms) {
    factor_.push_back(AddDurations(factor_seconds, labels.name, "algorithm", method));
  }
  LazyHistogram::Family& solve_seconds =
      AddFamily(registry, "crout_solve_duration_seconds",
                "Time of a triangular solve on the device, by solver and order of the matrix.");
  for (const MethodTraits& method : labels.solvers) {
    solve_.push_back(AddDurations(solve_seconds, labels.name, "solver", method));
  }
  for (size_t outcome = 0; outcome < series_steps_.size(); ++outcome) {
    series_steps_[outcome] = AddCounter(
        registry, "crout_series_steps_total", "Series steps, by outcome.",
        {{"device", labels.name}, {"outcome", std::string(kSeriesOutcomeNames[outcome])}});
  }
  for (size_t factor = 0; factor < series_iterations_.size(); ++factor) {
    series_iterations_[factor] = AddCounter(
        registry, "crout_series_iterations_total",
        "Iterations of series steps (applications of a factor), by factor: the old or a new one.",
        {{"device", labels.name}, {"factor", std::string(kSeriesFactorNames[factor])}});
  }
}

DeviceMetrics::Durations DeviceMetrics::AddDurations(LazyHistogram::Family& family,
                                                     const std::string& device, const char* label,
                                                     const MethodTraits& method) {
  Durations durations{.name = std::string(method.name), .histograms = {}};
  for (const DType dtype : kDTypes) {
    for (size_t size = 0; size < kSizeClassNames.size(); ++size) {
      durations.histograms[static_cast<size_t>(dtype)][size] = std::make_unique<LazyHistogram>(
          family,
          LazyHistogram::Labels{{label, durations.name},
                                {"device", device},
                                {"dtype", std::string(NameOf(dtype))},
                                {"size_class", std::string(kSizeClassNames[size])}},
          KernelBuckets);
    }
  }
  return durations;
}

// A device has few methods, so a linear search is faster than a hash table.
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

void DeviceMetrics::ObserveDynamicBatch(size_t calls, double waited_seconds) {
  dynamic_batch_size_->Observe(static_cast<double>(calls));
  dynamic_batch_delay_->Observe(waited_seconds);
}

void DeviceMetrics::ObserveBatchFactored(int64_t members, int64_t singular) {
  batch_factored_->Observe(static_cast<double>(members));
  batch_singular_->Increment(static_cast<double>(singular));
}

void DeviceMetrics::ObserveBatchSolved(int64_t systems) {
  batch_solved_->Observe(static_cast<double>(systems));
}

void DeviceMetrics::ObserveSeriesStep(const SeriesStepSummary& step, int64_t age) {
  SeriesOutcome outcome = step.update_rank > 0 ? SeriesOutcome::kUpdated : SeriesOutcome::kReused;
  if (!step.solved) {
    outcome = SeriesOutcome::kSingular;
  } else if (step.new_iterations > 0) {
    outcome = step.old_iterations > 0 ? SeriesOutcome::kFellBack : SeriesOutcome::kRefactored;
  }
  series_steps_[static_cast<size_t>(outcome)]->Increment();
  series_iterations_[0]->Increment(step.old_iterations);
  series_iterations_[1]->Increment(step.new_iterations);
  if (!step.accurate) series_inaccurate_->Increment();
  series_age_->Observe(static_cast<double>(age));
}

void DeviceMetrics::Set(const DeviceState& state) {
  budget_->Set(static_cast<double>(state.budget_bytes));
  reserved_->Set(static_cast<double>(state.reserved_bytes));
  pool_used_->Set(static_cast<double>(state.pool_used_bytes));
  pool_cached_->Set(static_cast<double>(state.pool_cached_bytes));
  driver_used_->Set(static_cast<double>(state.driver_used_bytes));
  memory_age_->Set(state.memory_age_seconds);
  queue_depth_->Set(static_cast<double>(state.queue_depth));
  preparing_depth_->Set(static_cast<double>(state.preparing_depth));
  admitting_depth_->Set(static_cast<double>(state.admitting_depth));
  storing_depth_->Set(static_cast<double>(state.storing_depth));
  releasing_depth_->Set(static_cast<double>(state.releasing_depth));
  streams_->Set(static_cast<double>(state.streams));
  streams_busy_->Set(static_cast<double>(state.streams_busy));
  healthy_->Set(state.healthy ? 1 : 0);
}

}  // namespace crout
