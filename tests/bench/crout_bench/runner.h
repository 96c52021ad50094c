// SPDX-License-Identifier: Apache-2.0

// Runs all cases on all matrices and returns the result.
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

// Called after each matrix with the result so far; its `skipped` has the remaining matrices. An
// error ends the run.
using KeepResult = std::function<absl::Status(const Json& so_far)>;

// Returns the result, which tests/bench/README.md describes. It has the messages of refused and
// failed cases. Fails if the inputs cannot be listed, if the device cannot create a context or
// becomes unhealthy, or with the error of `keep`. Writes progress to standard error.
absl::StatusOr<Json> RunBenchmark(Device& device, const Options& options, const KeepResult& keep);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_RUNNER_H_
