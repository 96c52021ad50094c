// SPDX-License-Identifier: Apache-2.0

// The matrices of a run. Only one of them is in memory at a time.
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
  std::string source;  // the family, or the file's path relative to the directory
  int64_t n = 0;
  int64_t nonzeros = 0;
  // n x n, column-major, in float64. A complex matrix has interleaved real and imaginary parts.
  std::vector<double> values;
  bool complex = false;
  // Returns the next matrix each time, for a family that is a series. Otherwise null.
  std::function<std::vector<double>()> steps = nullptr;
};

struct ProblemSource {
  std::string name;
  std::string source;
  // Loads the problem as a real or a complex matrix. As a complex matrix, a real file has zero
  // imaginary parts, and a family has A + i A^T. Returns FAILED_PRECONDITION if a file is not
  // square, if its order is outside the limits, or if a complex file is loaded as a real matrix.
  std::function<absl::StatusOr<Problem>(bool complex)> load;
};

// Returns the files, sorted by path, then the generated matrices in the order of the options.
absl::StatusOr<std::vector<ProblemSource>> ListProblems(const Options& options);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_PROBLEMS_H_
