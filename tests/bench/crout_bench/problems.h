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
  // n x n, column-major, in float64: of a complex matrix a real part, then an imaginary one, for
  // each element.
  std::vector<double> values;
  bool complex = false;
  // Of a family that changes by itself: the next matrix, each time. Else null.
  std::function<std::vector<double>()> steps = nullptr;
};

struct ProblemSource {
  std::string name;
  std::string source;
  // As a real matrix or a complex one. A real file has no imaginary parts then; of a family there
  // is A + i A^T. FAILED_PRECONDITION for a file that is not square or beyond the limits of order,
  // and for a complex one that is asked for as a real one.
  std::function<absl::StatusOr<Problem>(bool complex)> load;
};

// The files, by path, then the generated ones in the order asked for.
absl::StatusOr<std::vector<ProblemSource>> ListProblems(const Options& options);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_PROBLEMS_H_
