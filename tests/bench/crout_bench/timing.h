// SPDX-License-Identifier: Apache-2.0

// Times subjects in turns.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_TIMING_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_TIMING_H_

#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace crout::bench {

// Work that is repeated from the same initial state.
class Subject {
 public:
  virtual ~Subject() = default;

  // Restores what Run consumes. Not timed.
  virtual absl::Status Prepare() = 0;
  // Returns once the device is done.
  virtual absl::Status Run() = 0;
  // Returns an error if the run failed. Not timed.
  virtual absl::Status Check() = 0;
};

struct Timing {
  std::vector<double> seconds;  // one per repetition, in order
  absl::Status status;  // status of the first failed run, after which the subject is not run again
  bool cut_short = false;  // fewer repetitions than requested because of the time limit
};

// Runs every subject once untimed, then `repetitions` times in turns, so that disturbances affect
// all of them. A subject stops early when its timed runs took `limit_seconds` in total, or at its
// first failure.
std::vector<Timing> TimeInTurns(const std::vector<Subject*>& subjects, int repetitions,
                                double limit_seconds);

// Adds "times_s", "median_s", "mean_s", "deviation_s" (of the population), "min_s" and "max_s", and
// "cut_short" if it is set. If the subject failed, adds "error" only.
void AddTiming(const Timing& timing, nlohmann::ordered_json& json);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_TIMING_H_
