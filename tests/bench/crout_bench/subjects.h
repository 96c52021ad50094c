// SPDX-License-Identifier: Apache-2.0

// Subjects of timings: a factorization, a direct solve, and a factorization with a solve.
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

// Right-hand sides in device memory, n x nrhs and column-major, that subjects overwrite in turns.
class RightHandSides {
 public:
  // `values` is n x nrhs, with interleaved parts if complex. `bench` must outlive the object.
  static absl::StatusOr<RightHandSides> Create(Workbench& bench, int64_t nrhs,
                                               const std::vector<double>& values);

  AnyMatrix b() const;                                   // has undefined contents before Reset()
  absl::Status Reset();                                  // restores b()
  absl::StatusOr<std::vector<double>> Solution() const;  // the contents of b()

 private:
  Workbench* bench_ = nullptr;
  int64_t nrhs_ = 0;
  size_t bytes_ = 0;
  Buffer original_;
  Buffer b_;
};

// The following functions return subjects. Run() waits for the end of the operation and allocates
// no memory, because these functions reserve the workspace of `bench`. Their arguments must outlive
// the subject.

// Returns a subject that runs LuAlgorithm::Factor. A singular matrix is no error.
absl::StatusOr<std::unique_ptr<Subject>> MakeFactorSubject(Workbench& bench, const Case& c);

// Returns a subject that runs DirectSolver::Solve for `rhs`. Check() fails if the matrix is
// singular.
absl::StatusOr<std::unique_ptr<Subject>> MakeDirectSubject(Workbench& bench, RightHandSides& rhs,
                                                           const DirectSolver& solver);

// Returns a subject that runs LuAlgorithm::Factor and TriangularSolver::Solve for `rhs`, which a
// direct solver replaces. Check() fails if the matrix is singular.
absl::StatusOr<std::unique_ptr<Subject>> MakeFactorAndSolveSubject(Workbench& bench,
                                                                   RightHandSides& rhs,
                                                                   const LuAlgorithm& algorithm,
                                                                   const TriangularSolver& solver);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_SUBJECTS_H_
