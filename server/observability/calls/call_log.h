// SPDX-License-Identifier: Apache-2.0

// Logs calls, one line each, at a limited rate.
#ifndef CROUT_SERVER_OBSERVABILITY_CALLS_CALL_LOG_H_
#define CROUT_SERVER_OBSERVABILITY_CALLS_CALL_LOG_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "kernels/util/mutex.h"

namespace crout {

struct ObservedCall;

// Which calls are logged. Each value includes the values before it.
enum class LogCalls : uint8_t {
  kNone,  // only faults of the server (INTERNAL, UNKNOWN, DATA_LOSS)
  // the first kSlowPerSecond calls of each second that took CallLogOptions::slow or longer
  kSlow,
  kSampled,  // the first kSampledPerSecond other calls of each second
  kAll,
};

struct CallLogOptions {
  LogCalls calls = LogCalls::kSampled;
  absl::Duration slow = absl::Seconds(10);
};

// Thread-safe.
class CallLog {
 public:
  static constexpr int kSampledPerSecond = 10;
  // Limited, because clients can cause thousands of slow calls at once.
  static constexpr int kSlowPerSecond = 100;

  explicit CallLog(const CallLogOptions& options) : options_(options) {}

  // Logs the event "call", or counts the call as skipped. The next line reports the number of
  // skipped calls. For a call that was answered in steps, the duration of the step in which it
  // ended decides whether it is slow.
  void Write(const ObservedCall& call, double seconds);
  // Logs the event "step" if the step was slow; it counts as a slow call. The line contains the
  // step's phases, which the line of the call does not contain.
  void WriteStep(const ObservedCall& call, double seconds);

  // Whether to log another event that any client can cause. The event counts as a sampled call.
  bool AdmitEvent();

 private:
  enum class Kind : uint8_t { kFault, kSlow, kOther };

  // Returns the number of calls skipped since the last line, or nullopt if no line is due.
  std::optional<int64_t> Admit(Kind kind);
  bool IsDue(Kind kind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CallLogOptions options_;
  Mutex mutex_;
  // Start of the current second.
  std::chrono::steady_clock::time_point second_ ABSL_GUARDED_BY(mutex_);
  std::array<int, 3> lines_ ABSL_GUARDED_BY(mutex_) = {};  // lines in this second, by Kind
  int64_t skipped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_CALLS_CALL_LOG_H_
