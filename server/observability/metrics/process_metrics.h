// SPDX-License-Identifier: Apache-2.0

// The standard process metrics of Prometheus: CPU time, memory, files, threads, start time.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_PROCESS_METRICS_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_PROCESS_METRICS_H_

#include <prometheus/metric_family.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace crout {

// Fields of /proc/PID/stat in its units, see proc(5).
struct ProcessStat {
  int64_t cpu_ticks = 0;  // in user and kernel mode
  int64_t threads = 0;
  int64_t start_ticks = 0;  // since the system booted
  int64_t virtual_bytes = 0;
  int64_t resident_pages = 0;
};
// Parses the text of such a file. Returns nothing for other text. The program name in it may
// contain any characters.
std::optional<ProcessStat> ParseProcessStat(const std::string& text);

// Returns the families process_* of this process under the standard names
// (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics), and
// process_threads. Omits values that /proc does not provide.
std::vector<prometheus::MetricFamily> ProcessFamilies();

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_PROCESS_METRICS_H_
