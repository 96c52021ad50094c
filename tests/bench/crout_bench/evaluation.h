// SPDX-License-Identifier: Apache-2.0

// Results of a case besides its time, from one factorization and its solves, run as in the daemon.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_EVALUATION_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_EVALUATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "tests/bench/crout_bench/accuracy.h"
#include "tests/bench/crout_bench/cases.h"
#include "tests/bench/crout_bench/workbench.h"

namespace crout::bench {

struct EvaluationOptions {
  bool accuracy = true;   // compute the factor ratio and max |PA - LU|
  int refine = 0;         // maximum number of refinement steps of the second solve
  int pattern_cells = 0;  // cells per side of the pattern of LU; 0: no pattern
};

struct Evaluation {
  Json json;
  Factorization factor;
  MagnitudePattern lu_pattern;  // empty unless requested
};

// Factors a copy of the workbench's matrix.
absl::StatusOr<Factorization> FactorOnce(const Workbench& bench, const Case& c);

// Evaluates a case. `values` is the workbench's matrix, n x n, column-major. Returns the errors of
// Factorize; the JSON has the errors of solves.
absl::StatusOr<Evaluation> Evaluate(const Workbench& bench, const std::vector<double>& values,
                                    const Case& c, const EvaluationOptions& options);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_EVALUATION_H_
