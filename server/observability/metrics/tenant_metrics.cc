// SPDX-License-Identifier: Apache-2.0

#include "server/observability/metrics/tenant_metrics.h"

#include <cstdint>

namespace crout {
namespace {

// A value of TenantState: its metric family, and its second label if the family has one. Values of
// one family are adjacent.
struct TenantMetric {
  const char* name;
  const char* help;
  const char* label;  // null: only the label `tenant`
  const char* label_value;
  int64_t TenantState::*value;
};

constexpr const char* kBytes = "crout_tenant_bytes";
constexpr const char* kBytesHelp =
    "Bytes of a tenant: cached factors by tier, pinned factors, and memory of jobs and uploads.";
constexpr const char* kJobs = "crout_tenant_jobs";
constexpr const char* kJobsHelp = "Jobs of a tenant on all devices.";

constexpr TenantMetric kTenantMetrics[] = {
    {"crout_tenant_calls", "Calls of a tenant in progress.", nullptr, nullptr, &TenantState::calls},
    {"crout_tenant_factors", "Cached factors of a tenant.", nullptr, nullptr,
     &TenantState::factors},
    {kBytes, kBytesHelp, "kind", "device", &TenantState::device_bytes},
    {kBytes, kBytesHelp, "kind", "host", &TenantState::host_bytes},
    {kBytes, kBytesHelp, "kind", "store", &TenantState::store_bytes},
    {kBytes, kBytesHelp, "kind", "pinned", &TenantState::pinned_bytes},
    {kBytes, kBytesHelp, "kind", "in_flight", &TenantState::bytes_in_flight},
    {kJobs, kJobsHelp, "state", "queued", &TenantState::queued_jobs},
    {kJobs, kJobsHelp, "state", "running", &TenantState::running_jobs},
};

// The same for a counter.
struct TenantCounter {
  const char* name;
  const char* help;
  double TenantState::*value;
};

constexpr TenantCounter kTenantCounters[] = {
    {"crout_tenant_device_seconds_total", "Seconds of device streams that jobs have used.",
     &TenantState::device_seconds},
    {"crout_tenant_refusals_total", "Calls refused because of a quota of the tenant.",
     &TenantState::refusals},
};

}  // namespace

std::vector<prometheus::MetricFamily> TenantFamilies(const std::vector<TenantState>& tenants) {
  std::vector<prometheus::MetricFamily> families;
  if (tenants.empty()) return families;
  for (const TenantMetric& metric : kTenantMetrics) {
    if (families.empty() || families.back().name != metric.name) {
      families.push_back({metric.name, metric.help, prometheus::MetricType::Gauge, {}});
    }
    for (const TenantState& tenant : tenants) {
      prometheus::ClientMetric& sample = families.back().metric.emplace_back();
      sample.label.push_back({"tenant", tenant.tenant});
      if (metric.label != nullptr) sample.label.push_back({metric.label, metric.label_value});
      sample.gauge.value = static_cast<double>(tenant.*metric.value);
    }
  }
  for (const TenantCounter& counter : kTenantCounters) {
    families.push_back({counter.name, counter.help, prometheus::MetricType::Counter, {}});
    for (const TenantState& tenant : tenants) {
      prometheus::ClientMetric& sample = families.back().metric.emplace_back();
      sample.label.push_back({"tenant", tenant.tenant});
      sample.counter.value = tenant.*counter.value;
    }
  }
  return families;
}

}  // namespace crout
