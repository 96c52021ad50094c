// Runs every case on every matrix and collects the result.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_RUNNER_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_RUNNER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "tests/bench/crout_bench/cases.h"
#include "tests/bench/crout_bench/options.h"

namespace crout::bench {

// Given what is there after each matrix, those to come among its `skipped`; an error ends the run.
using KeepResult = std::function<absl::Status(const Json& so_far)>;

// The result file: docs/performance.md and tests/bench/README.md say what is in it. A case that is
// refused or fails has its message there; an error is one of the run itself: nothing to run, a
// device that cannot hold a matrix, or one of `keep`. Says on standard error how far it is.
absl::StatusOr<Json> RunBenchmark(Device& device, const Options& options, const KeepResult& keep);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_RUNNER_H_
