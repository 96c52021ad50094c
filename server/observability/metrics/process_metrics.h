// SPDX-License-Identifier: Apache-2.0

// What Prometheus asks of every process: CPU time, memory, files, threads, start.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_PROCESS_METRICS_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_PROCESS_METRICS_H_

#include <prometheus/metric_family.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace crout {

// Of /proc/PID/stat (proc(5)), in its units.
struct ProcessStat {
  int64_t cpu_ticks = 0;  // user and system
  int64_t threads = 0;
  int64_t start_ticks = 0;  // after the system's boot
  int64_t virtual_bytes = 0;
  int64_t resident_pages = 0;
};
// Nothing where `text` is not such a file's. The program's name in it may hold anything.
std::optional<ProcessStat> ParseProcessStat(const std::string& text);

// The families process_* of this process, by the names that Prometheus' client libraries give them
// (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics), and
// process_threads. Those that /proc does not tell are left out.
std::vector<prometheus::MetricFamily> ProcessFamilies();

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_PROCESS_METRICS_H_
