// SPDX-License-Identifier: Apache-2.0

// Compares solvers with the factors of one method, as in the thesis (CTU 2023, 3.1.4).
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_SOLVERS_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_SOLVERS_H_

#include "absl/status/status.h"
#include "tests/bench/crout_bench/cases.h"
#include "tests/bench/crout_bench/options.h"
#include "tests/bench/crout_bench/problems.h"
#include "tests/bench/crout_bench/workbench.h"

namespace crout::bench {

inline constexpr int64_t kSolverRhs = 10;

// Appends a JSON object to `cases` for each solver of the device: "algorithm" is the solver,
// "factors" is the method of its factors, and "nrhs" is kSolverRhs. Factors with the unit diagonal
// in U are by `cmpp` or `pcmpp` with the published rule, which exchanges pivots of at most 1e-5.
// Solvers that need the unit diagonal in L use getrf's factors. "max_abs_diff" is max |L U X - B|
// for right-hand sides of ones, which is the error of the solver without the error of the factors.
// Times exclude preparation. `bench` has the matrix of `problem`.
absl::Status RunSolvers(Workbench& bench, const Problem& problem, const Options& options,
                        Json& cases);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_SOLVERS_H_
