// SPDX-License-Identifier: Apache-2.0

// The matrices of a run, of which only one is in memory at a time.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_PROBLEMS_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_PROBLEMS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/crout_bench/options.h"

namespace crout::bench {

struct Problem {
  std::string name;    // "thesis558"; for a file, its name without extensions
  std::string source;  // the family, or the file's path in the directory
  int64_t n = 0;
  int64_t nonzeros = 0;
  // n x n, column-major, in float64. A complex matrix has interleaved real and imaginary parts.
  std::vector<double> values;
  bool complex = false;
  // For a family that changes by itself: returns the next matrix each time. Otherwise null.
  std::function<std::vector<double>()> steps = nullptr;
};

struct ProblemSource {
  std::string name;
  std::string source;
  // Loads a real or a complex matrix. As a complex matrix, a real file has zero imaginary parts,
  // and a family gives A + i A^T. FAILED_PRECONDITION if a file is not square or its order is out
  // of the limits, or if a complex file is loaded as real.
  std::function<absl::StatusOr<Problem>(bool complex)> load;
};

// Lists the files by path, then the generated matrices in the requested order.
absl::StatusOr<std::vector<ProblemSource>> ListProblems(const Options& options);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_PROBLEMS_H_
