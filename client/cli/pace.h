// When a load generator's calls are to begin, and which of them count.
#ifndef CROUT_CLIENT_CLI_PACE_H_
#define CROUT_CLIENT_CLI_PACE_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace crout::cli {

struct PaceOptions {
  double rate = 0;              // calls a second of all workers; 0: each as soon as it can
  absl::Duration warm_up = {};  // the calls of the first while do not count
  absl::Duration duration = absl::Seconds(5);  // of what counts
  int64_t requests = 0;  // > 0: so many calls that count, whatever the duration
};

// With a rate, calls have times of their own, `1 / rate` apart, whether or not those before have
// ended: a call that no worker was free for begins late, and who measures it from its time here
// sees the wait that a caller would have had (no coordinated omission). Thread-safe.
class Pace {
 public:
  Pace(const PaceOptions& options, absl::Time begin);

  // When the next call is, or was, to begin; nothing: no more calls. Waits until then.
  std::optional<absl::Time> Next();

  // Whether a call that was to begin at `time` counts.
  bool Counts(absl::Time time) const { return time >= measured_from_; }
  absl::Time measured_from() const { return measured_from_; }

 private:
  // Constant after construction.
  const PaceOptions options_;
  const absl::Time begin_;
  const absl::Time measured_from_;
  const absl::Time end_;
  std::atomic<int64_t> scheduled_ = 0;
  std::atomic<int64_t> counted_ = 0;
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_PACE_H_
