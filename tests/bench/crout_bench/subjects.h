// What is timed: a factorization, a direct solve, and a factorization with a solve.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_SUBJECTS_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_SUBJECTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/crout_bench/cases.h"
#include "tests/bench/crout_bench/timing.h"
#include "tests/bench/crout_bench/workbench.h"

namespace crout::bench {

// Right-hand sides in device memory that direct solves share, n x nrhs.
class RightHandSides {
 public:
  static absl::StatusOr<RightHandSides> Create(Workbench& bench, int64_t nrhs,
                                               const std::vector<double>& values);

  AnyMatrix b() const;  // fresh after Reset()
  absl::Status Reset();
  absl::StatusOr<std::vector<double>> Solution() const;  // what b() holds now

 private:
  Workbench* bench_ = nullptr;
  int64_t nrhs_ = 0;
  size_t bytes_ = 0;
  Buffer original_;
  Buffer b_;
};

// LuAlgorithm::Factor with everything allocated, and the wait for it. The arguments outlive it.
// Makes sure that the workbench has the workspace.
absl::StatusOr<std::unique_ptr<Subject>> MakeFactorSubject(Workbench& bench, const Case& c);

// DirectSolver::Solve, likewise.
absl::StatusOr<std::unique_ptr<Subject>> MakeDirectSubject(Workbench& bench, RightHandSides& rhs,
                                                           const DirectSolver& solver);

// Factor and then TriangularSolver::Solve for all right-hand sides: what a direct solver saves.
absl::StatusOr<std::unique_ptr<Subject>> MakeFactorAndSolveSubject(Workbench& bench,
                                                                   RightHandSides& rhs,
                                                                   const LuAlgorithm& algorithm,
                                                                   const TriangularSolver& solver);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_SUBJECTS_H_
