// The matrices of a run, one in memory at a time.
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
  std::string name;    // "thesis558"; of a file, its name without extensions
  std::string source;  // the family, or the file's path in the directory
  int64_t n = 0;
  int64_t nonzeros = 0;
  std::vector<double> values;  // n x n, column-major
};

struct ProblemSource {
  std::string name;
  std::string source;
  // FAILED_PRECONDITION for a file that is not square or beyond the limits of order.
  std::function<absl::StatusOr<Problem>()> load;
};

// The files, by path, then the generated ones in the order asked for.
absl::StatusOr<std::vector<ProblemSource>> ListProblems(const Options& options);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_PROBLEMS_H_
