// SPDX-License-Identifier: Apache-2.0

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

// Receives the result so far after each matrix, with the remaining ones in its `skipped`. An error
// ends the run.
using KeepResult = std::function<absl::Status(const Json& so_far)>;

// Returns the result; docs/performance.md and tests/bench/README.md describe its contents. A
// refused or failed case has its message there. Returns an error if there is nothing to run, if the
// device cannot hold a matrix, or if `keep` fails. Reports progress on standard error.
absl::StatusOr<Json> RunBenchmark(Device& device, const Options& options, const KeepResult& keep);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_RUNNER_H_
