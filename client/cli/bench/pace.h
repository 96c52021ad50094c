// SPDX-License-Identifier: Apache-2.0

// Schedules the calls of a load generator and selects those that are measured.
#ifndef CROUT_CLIENT_CLI_BENCH_PACE_H_
#define CROUT_CLIENT_CLI_BENCH_PACE_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace crout::cli {

struct PaceOptions {
  double rate = 0;                             // calls a second of all workers; 0: without pauses
  absl::Duration warm_up = {};                 // initial time that is not measured
  absl::Duration duration = absl::Seconds(5);  // measured time
  int64_t requests = 0;  // if > 0: number of measured calls, whatever the duration
};

// With a rate, calls have scheduled times `1 / rate` apart, whether or not earlier calls have
// ended. A call without a free worker begins late. Latencies from the scheduled time include that
// wait, as a real caller would see it (no coordinated omission). Thread-safe.
class Pace {
 public:
  Pace(const PaceOptions& options, absl::Time begin);

  // Waits until the next call is due and returns its scheduled time; nullopt if there are no more
  // calls.
  std::optional<absl::Time> Next();

  // Whether a call scheduled at `time` is measured.
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

#endif  // CROUT_CLIENT_CLI_BENCH_PACE_H_
