// SPDX-License-Identifier: Apache-2.0

// A load generator: concurrent workers with one connection each, in constant memory.
#ifndef CROUT_CLIENT_CLI_BENCH_BENCH_H_
#define CROUT_CLIENT_CLI_BENCH_BENCH_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/bench/latency_histogram.h"
#include "crout/client.h"

namespace crout::cli {

struct PaceOptions {
  double rate = 0;                             // calls a second of all workers; 0: without pauses
  absl::Duration warm_up = {};                 // initial time that is not measured
  absl::Duration duration = absl::Seconds(5);  // measured time
  int64_t requests = 0;  // number of measured calls; 0: `duration` is the limit
};

// Schedules the calls and selects those that are measured. With a rate, calls have scheduled times
// `1 / rate` apart, whether or not earlier calls have ended. A call without a free worker begins
// late. Latencies from the scheduled time include that wait, as a real caller would see it (no
// coordinated omission). Thread-safe.
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

enum class BenchMode {
  kSolve,   // solves with one factor, made before the measurement
  kFactor,  // factors, and releases each
  kMixed,   // each worker factors, solves ten times, releases
  kMix,     // a factorization or a solve each time, by BenchOptions::factor_share
};

struct BenchOptions {
  BenchMode mode = BenchMode::kSolve;
  int64_t n = 256;
  int64_t nrhs = 1;
  Dtype dtype = Dtype::kFloat64;
  FactorOptions factorize;
  double factor_share = 0;  // share of factorizations with kMix, 0 to 1
  PaceOptions pace;
};

// Counts of the calls of one kind.
struct BenchCounts {
  // Latencies of successful calls, each from its scheduled start.
  LatencyHistogram latencies;
  std::map<std::string, int64_t> errors;  // keys: status names
};

struct BenchResult {
  absl::Duration elapsed;                    // without the warm-up
  std::map<std::string, BenchCounts> calls;  // keys: "factorize", "solve"
};

// Runs `concurrency` workers on random, diagonally dominant matrices. Calls are not retried;
// refusals are counted. With a rate, `concurrency` limits the calls in flight. Returns an error
// only if the preparation fails or no call succeeds.
absl::StatusOr<BenchResult> RunBench(const ClientOptions& client, const BenchOptions& options,
                                     int concurrency);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_BENCH_BENCH_H_
