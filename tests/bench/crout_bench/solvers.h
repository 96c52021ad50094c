// Solvers beside each other, with the factors of one method: as the thesis measures them (CTU 2023,
// 3.1.4).
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_SOLVERS_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_SOLVERS_H_

#include "absl/status/status.h"
#include "tests/bench/crout_bench/cases.h"
#include "tests/bench/crout_bench/options.h"
#include "tests/bench/crout_bench/problems.h"
#include "tests/bench/crout_bench/workbench.h"

namespace crout::bench {

inline constexpr int64_t kSolverRhs = 10;

// Appends a JSON object for every solver of the device: "algorithm" is its name, "factors" the
// method whose factors it has, "nrhs" kSolverRhs. Factors with the unit diagonal in U come of
// `cmpp` or `pcmpp` by the published rule, pivots of at most 1e-5 being exchanged; solvers that
// need it in L get getrf's. "max_abs_diff" is max |L U P X - P B| for right-hand sides of ones, L U
// taken for the matrix: the solver's error alone. Times are without preparation.
absl::Status RunSolvers(Workbench& bench, const Problem& problem, const Options& options,
                        Json& cases);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_SOLVERS_H_
