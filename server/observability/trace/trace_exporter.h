// SPDX-License-Identifier: Apache-2.0

// Sends the spans of calls to a trace receiver (OpenTelemetry's protocol over HTTP).
#ifndef CROUT_SERVER_OBSERVABILITY_TRACE_TRACE_EXPORTER_H_
#define CROUT_SERVER_OBSERVABILITY_TRACE_TRACE_EXPORTER_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "kernels/util/mutex.h"
#include "server/net/http_post.h"
#include "server/observability/metrics/labels.h"
#include "server/observability/status/recent_work.h"

namespace crout {

struct TraceContext {
  std::string trace_id;   // 32 hexadecimal digits in lower case, not all 0
  std::string parent_id;  // the caller's span: 16 digits of the same form
  bool sampled = false;   // the caller records this trace
};

// Parses the untrusted header `traceparent`. Returns nothing unless it has exactly the form of
// version 00, "00-TRACE_ID-PARENT_ID-FLAGS".
std::optional<TraceContext> ParseTraceparent(std::string_view header);

// A finished call and its trace.
struct TracedCall {
  TraceContext context;
  EndedCall call;
};

// Returns an ExportTraceServiceRequest (OTLP 1.0, JSON encoding: hexadecimal identifiers, 64-bit
// numbers as strings). Each call is a SERVER span whose parent is the caller's span. It has an
// INTERNAL child span for each phase that took time.
//
// The start times of phases are not recorded. The phase spans are placed one after another from the
// start of the call, in the order of JobPhase, and end no later than the call. `make_span_id` must
// return 16 hexadecimal digits, different on each call.
std::string OtlpJson(std::span<const TracedCall> calls,
                     const std::function<std::string()>& make_span_id);

struct TraceExporterOptions {
  size_t capacity = 2048;                      // queued calls, about 500 bytes each
  size_t batch = 256;                          // most calls in one request
  std::chrono::milliseconds delay{1000};       // longest wait for a full batch
  std::chrono::milliseconds timeout{10000};    // time limit of one request
  std::chrono::milliseconds retry{1000};       // pause after a failure; doubled by each further one
  std::chrono::milliseconds max_retry{30000};  // longest pause after a failure
  std::chrono::milliseconds shutdown_timeout{2000};  // time limit for sending the queue at shutdown
};

// Never blocks a call on the receiver. Calls that cannot be sent in time are dropped and counted.
// Logs the start and the end of an outage (`trace_export_failed`, `trace_export_recovered`).
// Thread-safe.
class TraceExporter {
 public:
  // `endpoint` is a URL for ParseHttpUrl(); spans go to its path plus "/v1/traces".
  // INVALID_ARGUMENT for any other text.
  static absl::StatusOr<std::unique_ptr<TraceExporter>> Create(
      const std::string& endpoint, const TraceExporterOptions& options = {});
  // Sends the queued calls within options.shutdown_timeout, unless the last request failed.
  ~TraceExporter();
  TraceExporter(const TraceExporter&) = delete;  // Its thread points to it.
  TraceExporter& operator=(const TraceExporter&) = delete;

  // Queues the call, or drops it if the queue is full. Takes constant time.
  void Add(TracedCall call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls since the exporter was created.
  uint64_t exported() const { return exported_; }
  uint64_t dropped(TraceDrop reason) const { return dropped_[static_cast<size_t>(reason)]; }

 private:
  using Clock = std::chrono::steady_clock;
  TraceExporter(HttpUrl url, const TraceExporterOptions& options);

  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for a full batch, or until the first queued call has waited long enough. Returns the
  // calls to send; none at shutdown if the queue is empty.
  std::vector<TracedCall> Next() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if the receiver accepted the calls.
  bool Send(const std::vector<TracedCall>& calls);
  // Waits after a failure. Returns true if the exporter is stopping.
  bool BackOff() ABSL_LOCKS_EXCLUDED(mutex_);
  void Drop(TraceDrop reason, size_t calls) { dropped_[static_cast<size_t>(reason)] += calls; }

  // Constant after construction, or thread-safe.
  const TraceExporterOptions options_;
  HttpPoster poster_;

  // Used only by thread_.
  std::chrono::milliseconds next_retry_;
  bool failing_ = false;

  std::atomic<uint64_t> exported_ = 0;
  std::array<std::atomic<uint64_t>, kTraceDropNames.size()> dropped_ = {};

  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // the thread has finished
  std::vector<TracedCall> waiting_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point first_added_ ABSL_GUARDED_BY(mutex_);  // time at which waiting_ became nonempty
  std::thread thread_;
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_TRACE_TRACE_EXPORTER_H_
