// Times peers side by side.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_TIMING_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_TIMING_H_

#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace crout::bench {

// Something that is run again and again from the same state.
class Subject {
 public:
  virtual ~Subject() = default;

  // Restores what Run consumes. Not timed.
  virtual absl::Status Prepare() = 0;
  // Returns once the device is done.
  virtual absl::Status Run() = 0;
  // Whether the run ended well. Not timed.
  virtual absl::Status Check() = 0;
};

struct Timing {
  std::vector<double> seconds;  // one for each repetition, in their order
  absl::Status status;          // of the first run that failed: its subject is not run again
  bool cut_short = false;       // fewer repetitions than asked for, because of the time they took
};

// Runs every subject once untimed, then `repetitions` times in turns, so that a disturbance of the
// machine meets all of them. A subject whose timed runs took `limit_seconds` together sits out
// from then on; one that fails does at once.
std::vector<Timing> TimeInTurns(const std::vector<Subject*>& subjects, int repetitions,
                                double limit_seconds);

// {"times_s", "median_s", "mean_s", "deviation_s" (of the population), "min_s", "max_s"} and what
// else there is to say; without times only that.
void AddTiming(const Timing& timing, nlohmann::ordered_json& json);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_TIMING_H_
