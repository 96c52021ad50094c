// SPDX-License-Identifier: Apache-2.0

#include "server/observability/metrics/gpu_metrics.h"

#include <optional>

namespace crout {
namespace {

using prometheus::MetricType;

// A value of GpuReading: its metric family, and its label `kind` if the family has one. Values of
// one family are adjacent.
struct GpuMetric {
  const char* name;
  const char* help;
  MetricType type;
  const char* kind;
  std::optional<double> GpuReading::*value;
};

constexpr const char* kUtilization = "crout_gpu_utilization_ratio";
constexpr const char* kUtilizationHelp =
    "Fraction of at most the last second in which the GPU ran kernels or accessed its memory, for "
    "all processes.";
constexpr const char* kMemory = "crout_gpu_memory_bytes";
constexpr const char* kMemoryHelp = "Total GPU memory and the part in use by all processes.";
constexpr const char* kPower = "crout_gpu_power_watts";
constexpr const char* kPowerHelp = "Power draw of the GPU and the limit at which it slows down.";
constexpr const char* kClock = "crout_gpu_clock_hertz";
constexpr const char* kClockHelp = "Clock rates of the GPU multiprocessors and memory.";
constexpr const char* kEcc = "crout_gpu_ecc_errors_total";
constexpr const char* kEccHelp = "ECC errors of the GPU memory since the driver was loaded.";

constexpr GpuMetric kGpuMetrics[] = {
    {kUtilization, kUtilizationHelp, MetricType::Gauge, "compute",
     &GpuReading::compute_utilization},
    {kUtilization, kUtilizationHelp, MetricType::Gauge, "memory", &GpuReading::memory_utilization},
    {kMemory, kMemoryHelp, MetricType::Gauge, "total", &GpuReading::memory_total_bytes},
    {kMemory, kMemoryHelp, MetricType::Gauge, "used", &GpuReading::memory_used_bytes},
    {kPower, kPowerHelp, MetricType::Gauge, "draw", &GpuReading::power_watts},
    {kPower, kPowerHelp, MetricType::Gauge, "limit", &GpuReading::power_limit_watts},
    {"crout_gpu_energy_joules_total", "Energy used by the GPU since the driver was loaded.",
     MetricType::Counter, nullptr, &GpuReading::energy_joules},
    {"crout_gpu_temperature_celsius", "GPU temperature.", MetricType::Gauge, nullptr,
     &GpuReading::temperature_celsius},
    {"crout_gpu_slowdown_temperature_celsius", "Temperature at which the GPU slows down.",
     MetricType::Gauge, nullptr, &GpuReading::slowdown_celsius},
    {kClock, kClockHelp, MetricType::Gauge, "sm", &GpuReading::sm_clock_hertz},
    {kClock, kClockHelp, MetricType::Gauge, "memory", &GpuReading::memory_clock_hertz},
    {kEcc, kEccHelp, MetricType::Counter, "corrected", &GpuReading::ecc_corrected},
    {kEcc, kEccHelp, MetricType::Counter, "uncorrected", &GpuReading::ecc_uncorrected},
    {"crout_gpu_xid_errors_total", "Xid errors reported by the driver since the daemon started.",
     MetricType::Counter, nullptr, &GpuReading::xid_errors},
    {"crout_gpu_last_xid", "Number of the last Xid error; 0: none since the daemon started.",
     MetricType::Gauge, nullptr, &GpuReading::last_xid},
};

prometheus::ClientMetric Sample(const std::string& device, const char* kind, MetricType type,
                                double value) {
  prometheus::ClientMetric metric;
  metric.label.push_back({"device", device});
  if (kind != nullptr) metric.label.push_back({"kind", kind});
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return metric;
}

}  // namespace

std::vector<prometheus::MetricFamily> GpuFamilies(const std::vector<NamedGpu>& gpus) {
  std::vector<prometheus::MetricFamily> families;
  for (const GpuMetric& gpu_metric : kGpuMetrics) {
    for (const NamedGpu& gpu : gpus) {
      const std::optional<double>& value = gpu.reading.*gpu_metric.value;
      if (!value.has_value()) continue;
      if (families.empty() || families.back().name != gpu_metric.name) {
        families.push_back({gpu_metric.name, gpu_metric.help, gpu_metric.type, {}});
      }
      families.back().metric.push_back(
          Sample(gpu.device, gpu_metric.kind, gpu_metric.type, *value));
    }
  }
  if (gpus.empty()) return families;
  auto& ages = families.emplace_back(
      prometheus::MetricFamily{"crout_gpu_reading_age_seconds",
                               "Time since the last successful reading from the GPU driver.",
                               MetricType::Gauge,
                               {}});
  for (const NamedGpu& gpu : gpus) {
    ages.metric.push_back(Sample(gpu.device, nullptr, MetricType::Gauge, gpu.reading.age_seconds));
  }
  return families;
}

}  // namespace crout
