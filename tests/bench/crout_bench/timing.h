// SPDX-License-Identifier: Apache-2.0

// Times several subjects in turns.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_TIMING_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_TIMING_H_

#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace crout::bench {

// An operation that is repeated from the same initial state.
class Subject {
 public:
  virtual ~Subject() = default;

  // Restores the initial state. Not timed.
  virtual absl::Status Prepare() = 0;
  // Runs the operation and waits for its end. Timed.
  virtual absl::Status Run() = 0;
  // Returns an error if the operation failed. Not timed.
  virtual absl::Status Check() = 0;
};

struct Timing {
  std::vector<double> seconds;  // one per repetition, in order
  absl::Status status;          // error of the first failure, after which the subject does not run
  bool cut_short = false;       // the time limit ended the repetitions
};

// Runs each subject once untimed, then `repetitions` times in turns, so that disturbances affect
// all of them. A subject ends early when its timed runs have taken `limit_seconds` in total, or at
// its first failure.
std::vector<Timing> TimeInTurns(const std::vector<Subject*>& subjects, int repetitions,
                                double limit_seconds);

// Adds "times_s", "median_s", "mean_s", "deviation_s" (the standard deviation of the population),
// "min_s" and "max_s", and "cut_short" if it is set. If the subject failed, adds only "error".
void AddTiming(const Timing& timing, nlohmann::ordered_json& json);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_TIMING_H_
