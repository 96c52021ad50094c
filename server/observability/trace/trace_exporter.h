// SPDX-License-Identifier: Apache-2.0

// Sends the spans of calls to a receiver of traces (OpenTelemetry's protocol over HTTP).
#ifndef CROUT_SERVER_OBSERVABILITY_TRACE_TRACE_EXPORTER_H_
#define CROUT_SERVER_OBSERVABILITY_TRACE_TRACE_EXPORTER_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "kernels/util/mutex.h"
#include "server/net/http_post.h"
#include "server/observability/metrics/labels.h"
#include "server/observability/trace/otlp_json.h"

namespace crout {

struct TraceExporterOptions {
  size_t capacity = 2048;                       // calls that may wait, some 500 bytes each
  size_t batch = 256;                           // calls in one request at most
  std::chrono::milliseconds delay{1000};        // how long a call waits for others to go with it
  std::chrono::milliseconds patience{10000};    // with the receiver, for each request
  std::chrono::milliseconds retry{1000};        // after a failure; twice as long after the next,
  std::chrono::milliseconds max_retry{30000};   // and so on up to this
  std::chrono::milliseconds last_chance{2000};  // for what still waits at the end
};

// No call ever waits for the receiver: what it does not take in time is dropped and counted, and
// the log says so when it begins and ends (`traces_failed`, `traces_taken`). Thread-safe.
class TraceExporter {
 public:
  // `endpoint`: ParseHttpUrl(); spans go to its path and "/v1/traces". INVALID_ARGUMENT for what is
  // no such URL.
  static absl::StatusOr<std::unique_ptr<TraceExporter>> Create(
      const std::string& endpoint, const TraceExporterOptions& options = {});
  // Sends what waits, within the last chance, unless the receiver has just failed.
  ~TraceExporter();
  TraceExporter(const TraceExporter&) = delete;  // Its thread points to it.
  TraceExporter& operator=(const TraceExporter&) = delete;

  // Takes constant time, and drops the call where too many wait.
  void Add(TracedCall call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls, since the exporter began.
  uint64_t exported() const { return exported_; }
  uint64_t dropped(TraceDrop reason) const { return dropped_[static_cast<size_t>(reason)]; }

 private:
  using Clock = std::chrono::steady_clock;
  TraceExporter(HttpUrl url, const TraceExporterOptions& options);

  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls to send, once there are as many as go together or the first has waited; none at the end.
  std::vector<TracedCall> Next() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the receiver took them.
  bool Send(const std::vector<TracedCall>& calls);
  // Waits after a failure; whether the exporter ends.
  bool BackOff() ABSL_LOCKS_EXCLUDED(mutex_);
  void Drop(TraceDrop reason, size_t calls) { dropped_[static_cast<size_t>(reason)] += calls; }

  // Constant after construction, but for what is thread-safe itself.
  const TraceExporterOptions options_;
  HttpPoster poster_;

  // The thread's own.
  std::chrono::milliseconds next_retry_;
  bool failing_ = false;

  std::atomic<uint64_t> exported_ = 0;
  std::array<std::atomic<uint64_t>, kTraceDropNames.size()> dropped_ = {};

  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // the thread
  std::vector<TracedCall> waiting_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point first_added_ ABSL_GUARDED_BY(mutex_);  // of those that wait
  std::thread thread_;
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_TRACE_TRACE_EXPORTER_H_
