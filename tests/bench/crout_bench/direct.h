// SPDX-License-Identifier: Apache-2.0

// Compares direct solvers with a factorization and a solve.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_DIRECT_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_DIRECT_H_

#include <vector>

#include "absl/status/status.h"
#include "tests/bench/crout_bench/cases.h"
#include "tests/bench/crout_bench/options.h"
#include "tests/bench/crout_bench/problems.h"
#include "tests/bench/crout_bench/workbench.h"

namespace crout::bench {

// Appends a JSON object to `cases` for getrf with getrs and for each direct solver of the device,
// with 1 and with n right-hand sides. Appends nothing if the device has no direct solver. `bench`
// has the matrix of `problem`.
absl::Status RunDirect(Workbench& bench, const Problem& problem, const Options& options,
                       Json& cases);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_DIRECT_H_
