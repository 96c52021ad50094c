// One line in the log for each call that is worth one.
#ifndef CROUT_SERVER_RPC_CALL_LOG_H_
#define CROUT_SERVER_RPC_CALL_LOG_H_

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
  kSlow,     // calls that took CallLogOptions::slow or longer
  kSampled,  // up to kSampledPerSecond others in each second, the first of them
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

  explicit CallLog(const CallLogOptions& options) : options_(options) {}

  // Logs the event "call", or counts it as skipped: the next line says how many were.
  void Write(const ObservedCall& call, double seconds);

  // Whether another event that any caller can cause gets a line now, as one of those sampled.
  bool AdmitEvent();

 private:
  // Calls skipped since the last line, if one is due now.
  std::optional<int64_t> Admit(bool always, bool fault);

  const CallLogOptions options_;
  Mutex mutex_;
  std::chrono::steady_clock::time_point second_ ABSL_GUARDED_BY(mutex_);  // when it began
  int lines_ ABSL_GUARDED_BY(mutex_) = 0;                                 // in it
  int64_t skipped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALL_LOG_H_
