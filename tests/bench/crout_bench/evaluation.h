// SPDX-License-Identifier: Apache-2.0

// Results of a case other than its time: one factorization and its solves, run as in the daemon.
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
  bool accuracy = true;  // compute the factor ratio and max |PA - LU|
  int refine = 0;
  int pattern_cells = 0;
};

struct Evaluation {
  Json json;
  Factorization factor;
  MagnitudePattern lu_pattern;  // on request
};

// Factors the workbench's matrix once.
absl::StatusOr<Factorization> FactorOnce(const Workbench& bench, const Case& c);

// Evaluates a case. `values` is the workbench's matrix. Fails if Factorize fails; errors of the
// solve are in the JSON.
absl::StatusOr<Evaluation> Evaluate(const Workbench& bench, const std::vector<double>& values,
                                    const Case& c, const EvaluationOptions& options);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_EVALUATION_H_
