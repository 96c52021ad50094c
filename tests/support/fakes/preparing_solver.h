// SPDX-License-Identifier: Apache-2.0

// A triangular solver that needs prepared factors, for tests without a GPU.
#ifndef CROUT_TESTS_SUPPORT_FAKES_PREPARING_SOLVER_H_
#define CROUT_TESTS_SUPPORT_FAKES_PREPARING_SOLVER_H_

#include "kernels/lu_algorithm.h"

namespace crout::testing {

// Registers as "crout_solve" in host memory, for real types. Solves with `inner`, which must
// outlive it, and multiplies the last unknown by 1 + `error`. Returns INTERNAL for a factor that it
// did not prepare. Predicts zero seconds, less than any other solver.
//
// Prepare reports max |u_ii| / min |u_ii| as the condition, and 1 for the transpose.
// AssessPreparation returns kFull for a condition up to kTrusted, Reliability::kMeasured for one up
// to PreparingSolver::kMeasured, and kNone above.
class PreparingSolver final : public TriangularSolver {
 public:
  static constexpr double kTrusted = 1e3;
  static constexpr double kMeasured = 1e5;

  explicit PreparingSolver(const TriangularSolver& inner, double error = 0)
      : inner_(inner),
        traits_{.name = "crout_solve",
                .description = "another's answer",
                .solves_with = inner.traits().solves_with,
                .needs_preparation = true},
        error_(error) {}

  const MethodTraits& traits() const override { return traits_; }
  double PredictSeconds(DType, int64_t, int64_t) const override { return 0; }
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const override {
    return inner_.WorkspaceBytes(dtype, n, nrhs);
  }
  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double tolerance,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override;

  absl::StatusOr<size_t> PreparedBytes(DType dtype, int64_t n) const override;
  absl::Status Prepare(ExecutionContext& context, const FactorView& factor,
                       std::span<std::byte> prepared) const override;
  Reliability AssessPreparation(const PreparationStats& preparation, DType dtype, int64_t n,
                                Op op) const override;

 private:
  const TriangularSolver& inner_;
  const MethodTraits traits_;
  const double error_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_FAKES_PREPARING_SOLVER_H_
