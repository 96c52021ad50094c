// SPDX-License-Identifier: Apache-2.0

// Timed subjects: a factorization, a direct solve, and a factorization with a solve.
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

  AnyMatrix b() const;  // valid after Reset()
  absl::Status Reset();
  absl::StatusOr<std::vector<double>> Solution() const;  // present contents of b()

 private:
  Workbench* bench_ = nullptr;
  int64_t nrhs_ = 0;
  size_t bytes_ = 0;
  Buffer original_;
  Buffer b_;
};

// Makes a subject that runs LuAlgorithm::Factor with all memory allocated and waits for it. The
// arguments must outlive it. Ensures that the workbench has the workspace.
absl::StatusOr<std::unique_ptr<Subject>> MakeFactorSubject(Workbench& bench, const Case& c);

// The same for DirectSolver::Solve.
absl::StatusOr<std::unique_ptr<Subject>> MakeDirectSubject(Workbench& bench, RightHandSides& rhs,
                                                           const DirectSolver& solver);

// The same for Factor followed by TriangularSolver::Solve for all right-hand sides, which a direct
// solver replaces.
absl::StatusOr<std::unique_ptr<Subject>> MakeFactorAndSolveSubject(Workbench& bench,
                                                                   RightHandSides& rhs,
                                                                   const LuAlgorithm& algorithm,
                                                                   const TriangularSolver& solver);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_SUBJECTS_H_
