// SPDX-License-Identifier: Apache-2.0

// A direct solver for tests of its callers.
#ifndef CROUT_TESTS_SUPPORT_FAKES_PLAIN_DIRECT_SOLVER_H_
#define CROUT_TESTS_SUPPORT_FAKES_PLAIN_DIRECT_SOLVER_H_

#include "kernels/direct_solver.h"

namespace crout::testing {

// Textbook Gauss-Jordan elimination with partial pivoting in host memory, for real types. Polls
// `stop` before each column. Writes all n + nrhs elements of the workspace, so that tests detect
// one that is too small.
class PlainDirectSolver final : public DirectSolver {
 public:
  explicit PlainDirectSolver(
      const MethodTraits& traits = {.name = "gauss_jordan",
                                    .description = "Gauss-Jordan by the textbook"})
      : traits_(traits) {}

  const MethodTraits& traits() const override { return traits_; }
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const override;
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override;
  absl::Status Solve(ExecutionContext& context, const AnyMatrix& a, const AnyMatrix& b,
                     std::span<std::byte> workspace, StopRequested stop) const override;

 private:
  const MethodTraits traits_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_FAKES_PLAIN_DIRECT_SOLVER_H_
