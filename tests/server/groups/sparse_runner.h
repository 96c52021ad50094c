// SPDX-License-Identifier: Apache-2.0

// Factors sparse matrices for tests of groups.
#ifndef CROUT_TESTS_SERVER_GROUPS_SPARSE_RUNNER_H_
#define CROUT_TESTS_SERVER_GROUPS_SPARSE_RUNNER_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "kernels/jobs/sparse/sparse_factorize.h"
#include "kernels/sparse/ordering_process.h"
#include "tests/kernels/jobs/sparse_job_testing.h"
#include "tests/kernels/sparse_lu_testing.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {

// A grid of m x m x m points.
inline PackedSparse Grid(int64_t m, DType dtype) {
  return OfType(GridEntries(m, 3), m * m * m, dtype);
}

// Factors sparse matrices on one device, as the daemon does.
class SparseRunner {
 public:
  SparseRunner(Device& device, std::string_view method)
      : runner_(device), method_(MethodOf(device, method)) {}

  absl::StatusOr<std::shared_ptr<const Analysis>> AnalysisOf(
      const PackedSparse& a, MatchingMode matching = MatchingMode::kAuto) {
    AnalysisOptions options;
    options.matching = matching;
    options.ordering_program = OrderingProgram();
    CROUT_ASSIGN_OR_RETURN(Analysis analysis, Analyze(a.view(), options, JobRunner::NeverStop()));
    return std::make_shared<const Analysis>(std::move(analysis));
  }

  absl::StatusOr<Factorization> Factor(const PackedSparse& a,
                                       std::shared_ptr<const Analysis> analysis,
                                       const Factorization* last = nullptr,
                                       StopRequested stop = JobRunner::NeverStop()) {
    SparseFactorizeOptions options;
    options.method = method_;
    options.factor_dtype = a.dtype;
    options.determinant = options.condition = true;
    options.last = last;
    CROUT_ASSIGN_OR_RETURN(
        const SparseFactorizePlan plan,
        PlanSparseFactorize(options, std::move(analysis), last != nullptr, a.dtype));
    CROUT_ASSIGN_OR_RETURN(Buffer upload, Uploaded(runner_.context(), a.view()));
    return FactorizeSparse(runner_.context(), plan, std::move(upload), stop, runner_.timings(),
                           &growth);
  }
  absl::StatusOr<Factorization> Factor(const PackedSparse& a,
                                       MatchingMode matching = MatchingMode::kAuto) {
    CROUT_ASSIGN_OR_RETURN(std::shared_ptr<const Analysis> analysis, AnalysisOf(a, matching));
    return Factor(a, std::move(analysis));
  }

  // Returns the backward error of a solve with random right-hand sides, as the job measured it.
  double ErrorOf(const Factorization& factor, Op op, int64_t columns, int refinement_steps = 0) {
    const int64_t n = factor.summary.n;
    const auto solution = runner_.SolveComplex(
        factor, RightHandSides(n, columns, factor.summary.matrix_dtype), columns,
        {.dtype = factor.summary.matrix_dtype, .op = op, .max_refinement_steps = refinement_steps});
    EXPECT_OK(solution);
    if (!solution.ok()) return std::numeric_limits<double>::infinity();
    return *solution->summary.backward_error;
  }

  JobRunner& runner() { return runner_; }
  const SparseMethod& method() const { return method_; }

  GrantingGrowth growth;

 private:
  JobRunner runner_;
  const SparseMethod method_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_GROUPS_SPARSE_RUNNER_H_
