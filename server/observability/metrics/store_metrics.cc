// SPDX-License-Identifier: Apache-2.0

#include "server/observability/metrics/store_metrics.h"

#include <initializer_list>
#include <utility>

namespace crout {
namespace {

struct LabelledValue {
  const char* label_value;
  int64_t value;
};

// Returns a family with one metric for each value of the label.
prometheus::MetricFamily StoreFamily(const char* name, const char* help,
                                     prometheus::MetricType type, const char* label,
                                     std::initializer_list<LabelledValue> values) {
  prometheus::MetricFamily family{name, help, type, {}};
  for (const auto& [label_value, value] : values) {
    prometheus::ClientMetric metric;
    if (label != nullptr) metric.label = {{label, label_value}};
    (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) =
        static_cast<double>(value);
    family.metric.push_back(std::move(metric));
  }
  return family;
}

}  // namespace

std::vector<prometheus::MetricFamily> StoreFamilies(const StoreState& state) {
  using enum prometheus::MetricType;
  std::vector<prometheus::MetricFamily> families = {
      StoreFamily("crout_store_bytes", "Bytes of all files of the store, and their limit.", Gauge,
                  "kind", {{"limit", state.limit_bytes}, {"used", state.used_bytes}}),
      StoreFamily("crout_store_degraded",
                  "1 while the store refuses writes because the last write failed.", Gauge, nullptr,
                  {{"", state.degraded ? 1 : 0}}),
      StoreFamily("crout_store_quarantined_files", "Damaged files in the quarantine of the store.",
                  Gauge, nullptr, {{"", state.quarantined}}),
      StoreFamily("crout_store_unusable_files",
                  "Files of the store, outside the quarantine, that hold no usable factor.", Gauge,
                  nullptr, {{"", state.unusable}}),
      StoreFamily("crout_store_transferred_bytes_total",
                  "Bytes written to the files of the store and read from them.", Counter,
                  "operation", {{"write", state.written_bytes}, {"read", state.read_bytes}}),
      StoreFamily("crout_store_failures_total", "Writes and reads of the store that failed.",
                  Counter, "operation",
                  {{"write", state.failed_writes}, {"read", state.failed_reads}}),
  };
  if (!state.folders) return families;
  families.push_back(StoreFamily("crout_store_folders",
                                 "Folders of the bucket that the server owns.", Gauge, nullptr,
                                 {{"", state.folders->owned}}));
  families.push_back(StoreFamily(
      "crout_store_folder_changes_total",
      "Folders that the server adopted from another server, or lost to "
      "one.",
      Counter, "change", {{"adopted", state.folders->adopted}, {"lost", state.folders->lost}}));
  return families;
}

}  // namespace crout
