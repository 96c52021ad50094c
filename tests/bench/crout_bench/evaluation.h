// What a case yields, apart from its time: one factorization and its solves, as the daemon does
// them.
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
  bool accuracy = true;  // the factor ratio and max |PA - LU|
  int refine = 0;
  int pattern_cells = 0;
};

struct Evaluation {
  Json json;
  Factorization factor;
  MagnitudePattern lu_pattern;  // if asked for
};

// One factorization of the matrix on the workbench.
absl::StatusOr<Factorization> FactorOnce(const Workbench& bench, const Case& c);

// `values`: the matrix on the workbench. Fails as Factorize does; what its solve says is in the
// JSON.
absl::StatusOr<Evaluation> Evaluate(const Workbench& bench, const std::vector<double>& values,
                                    const Case& c, const EvaluationOptions& options);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_EVALUATION_H_
