// SPDX-License-Identifier: Apache-2.0

// A snapshot of the data of the status page.
#ifndef CROUT_SERVER_OBSERVABILITY_STATUS_STATUS_PAGE_H_
#define CROUT_SERVER_OBSERVABILITY_STATUS_STATUS_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "server/observability/metrics/lazy_histogram.h"
#include "server/observability/metrics/metrics.h"
#include "server/observability/metrics/state.h"
#include "server/observability/status/recent_work.h"

namespace crout {

// A call in progress.
struct OpenCall {
  uint64_t id = 0;  // the call's number, as in the log
  Method method = Method::kFactorize;
  std::string tenant;
  std::string_view phase;  // one of kCallPhaseNames
  std::string device;      // empty: none yet
  uint64_t received_bytes = 0;
  double seconds = 0;    // since the call began
  bool overdue = false;  // its job has run far longer than predicted
};

struct StatusView {
  struct Device {
    std::string name;
    std::string description;
  };
  // Observations of a phase or method since the start.
  struct Latency {
    std::string_view name;
    HistogramReading reading;
  };

  std::string version;
  absl::Time now;
  absl::Duration uptime;
  bool ready = false;
  std::vector<Device> devices;  // in the order of state.devices
  int64_t queue_capacity = 0;   // jobs that may wait for each device
  ServerState state;
  CacheCounts cache;
  size_t calls_in_flight = 0;
  std::vector<OpenCall> open_calls;   // the oldest calls, oldest first
  std::vector<EndedCall> slow_calls;  // slowest first
  std::vector<Latency> phases;
  std::vector<Latency> methods;
  std::optional<IterationRun> last_run;
};

// Returns HTML in XML syntax without scripts or external resources. The page reloads every ten
// seconds. Its size is bounded by the size of the view.
std::string RenderStatusPage(const StatusView& view);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_STATUS_STATUS_PAGE_H_
