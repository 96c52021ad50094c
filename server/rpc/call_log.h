// SPDX-License-Identifier: Apache-2.0

// One line in the log for each call that is worth one.
#ifndef CROUT_SERVER_RPC_CALL_LOG_H_
#define CROUT_SERVER_RPC_CALL_LOG_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "kernels/util/mutex.h"

namespace crout {

struct ObservedCall;

// What the log says of calls. Each includes those before it.
enum class LogCalls : uint8_t {
  kNone,     // nothing but failures of the server's own (INTERNAL, UNKNOWN, DATA_LOSS)
  kSlow,     // in each second the first kSlowPerSecond that took CallLogOptions::slow or longer
  kSampled,  // and the first kSampledPerSecond others
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
  // Callers can make calls slow, thousands at once.
  static constexpr int kSlowPerSecond = 100;

  explicit CallLog(const CallLogOptions& options) : options_(options) {}

  // Logs the event "call", or counts it as skipped: the next line says how many were. A call that
  // was answered step by step is slow where the step in which it ended was.
  void Write(const ObservedCall& call, double seconds);
  // Logs the event "step" if the step was slow, as one of the slow calls: it has the phases that
  // its call's line lacks.
  void WriteStep(const ObservedCall& call, double seconds);

  // Whether another event that any caller can cause gets a line now, as one of those sampled.
  bool AdmitEvent();

 private:
  enum class Kind : uint8_t { kFault, kSlow, kOther };

  // Calls skipped since the last line, if one is due now.
  std::optional<int64_t> Admit(Kind kind);
  bool IsDue(Kind kind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CallLogOptions options_;
  Mutex mutex_;
  std::chrono::steady_clock::time_point second_ ABSL_GUARDED_BY(mutex_);  // when it began
  std::array<int, 3> lines_ ABSL_GUARDED_BY(mutex_) = {};                 // in it, by kind
  int64_t skipped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALL_LOG_H_
