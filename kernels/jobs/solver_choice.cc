// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/solve.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

// The error bound needs solves with the matrix and with its transpose.
Reliability ReliabilityOf(const TriangularSolver& solver, const FactorSummary& factor,
                          const SolveOptions& options) {
  const auto trust = [&](Op op) {
    return solver.AssessPreparation(*factor.preparation, factor.factor_dtype, factor.n, op);
  };
  if (options.error_bound) return std::min(trust(Op::kNone), trust(Op::kTranspose));
  return trust(options.op);
}

}  // namespace

absl::StatusOr<SolverChoice> ChooseSolver(const FactorSummary& factor, const SolveOptions& options,
                                          bool measured) {
  const TriangularSolver& solver = *options.solver;
  if (!solver.needs_preparation()) return SolverChoice{&solver};
  if (!factor.preparation) {
    return absl::FailedPreconditionError(
        absl::StrCat("solver '", ToAbsl(solver.name()),
                     "' needs a factor that was prepared for it. Use solver 'auto', or factor the "
                     "matrix again"));
  }
  // The backward errors of the error bound's own solves are not measured.
  const bool judged = measured && !options.error_bound;
  if (ReliabilityOf(solver, factor, options) >=
      (judged ? Reliability::kMeasured : Reliability::kFull)) {
    return SolverChoice{&solver, options.fallback};
  }
  if (options.fallback != nullptr) {
    return SolverChoice{options.fallback, nullptr, SolverFallback::kCondition};
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "solver '", ToAbsl(solver.name()), "' is not accurate with this factor. Use solver 'auto'"));
}

}  // namespace crout
