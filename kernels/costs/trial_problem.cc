// SPDX-License-Identifier: Apache-2.0

#include "kernels/costs/trial_problem.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "kernels/device.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"

namespace crout {

double SteadySeconds() {
  const std::chrono::duration<double> now = SteadyNow().time_since_epoch();
  return now.count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

absl::StatusOr<TrialProblem> TrialProblem::Create(
    Device& device, DType dtype, int64_t n, std::span<const LuAlgorithm* const> algorithms,
    std::span<const TriangularSolver* const> solvers) {
  TrialProblem problem(dtype, n);
  size_t workspace = 0;
  size_t prepared = 0;
  for (const LuAlgorithm* algorithm : algorithms) {
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, algorithm->WorkspaceBytes(dtype, n, {}));
    workspace = std::max(workspace, bytes);
  }
  for (const TriangularSolver* solver : solvers) {
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, solver->WorkspaceBytes(dtype, n, 1));
    workspace = std::max(workspace, bytes);
    CROUT_ASSIGN_OR_RETURN(const size_t preparing, solver->PreparedBytes(dtype, n));
    prepared = std::max(prepared, preparing);
  }
  MemoryResource& memory = device.memory();
  const size_t bytes = n * n * SizeOf(dtype);
  CROUT_ASSIGN_OR_RETURN(problem.matrix_, device.staging_memory().Allocate(bytes));
  CROUT_ASSIGN_OR_RETURN(problem.lu_, memory.Allocate(bytes));
  CROUT_ASSIGN_OR_RETURN(problem.ipiv_, memory.Allocate(n * sizeof(int64_t)));
  CROUT_ASSIGN_OR_RETURN(problem.rhs_, memory.Allocate(n * SizeOf(dtype)));
  CROUT_ASSIGN_OR_RETURN(problem.workspace_, memory.Allocate(workspace));
  CROUT_ASSIGN_OR_RETURN(problem.prepared_, memory.Allocate(prepared));
  problem.Fill();
  return problem;
}

void TrialProblem::Fill() {
  uint64_t state = static_cast<uint64_t>(n_);
  const int64_t parts = IsComplex(dtype_) ? 2 : 1;
  DispatchReal(RealOf(dtype_), [&](auto tag) {
    using T = typename decltype(tag)::type;
    // splitmix64 is fast, which matters for large matrices.
    std::generate_n(matrix_.as<T>(), parts * n_ * n_, [&] {
      uint64_t z = state += 0x9e3779b97f4a7c15;
      z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
      z = (z ^ z >> 27) * 0x94d049bb133111eb;
      return static_cast<T>(static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-52 - 1);
    });
  });
}

absl::StatusOr<double> TrialProblem::TimeFactor(ExecutionContext& context,
                                                const LuAlgorithm& algorithm, Timer timer) {
  CROUT_RETURN_IF_ERROR(context.ops().CopyToDevice(matrix_.data(), lu_.data(), matrix_.size()));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  const double start = timer();
  const absl::Status status =
      algorithm.Factor(context, lu(), ipiv_.as<int64_t>(), {workspace_.data(), workspace_.size()},
                       {}, [] { return false; });
  const absl::Status ended = context.Synchronize();  // always: the work may still use the memory
  CROUT_RETURN_IF_ERROR(status);
  CROUT_RETURN_IF_ERROR(ended);
  unit_diagonal_ = algorithm.traits().unit_diagonal;
  return timer() - start;
}

absl::StatusOr<double> TrialProblem::TimeSolve(ExecutionContext& context,
                                               const TriangularSolver& solver, Timer timer) {
  FactorView factor = {lu(), ipiv_.as<int64_t>(), unit_diagonal_};
  factor.prepared = prepared_.data();
  CROUT_RETURN_IF_ERROR(
      context.ops().CopyToDevice(matrix_.data(), rhs_.data(), n_ * SizeOf(dtype_)));
  absl::Status status = solver.needs_preparation()
                            ? solver.Prepare(context, factor, {prepared_.data(), prepared_.size()})
                            : absl::OkStatus();
  const absl::Status ready = context.Synchronize();
  CROUT_RETURN_IF_ERROR(status);
  CROUT_RETURN_IF_ERROR(ready);
  if (solver.needs_preparation()) factor.preparation = context.report().preparation;
  const double start = timer();
  status = solver.Solve(context, factor, Op::kNone, 0, {rhs_.data(), dtype_, n_, 1, n_},
                        {workspace_.data(), workspace_.size()});
  const absl::Status ended = context.Synchronize();
  CROUT_RETURN_IF_ERROR(status);
  CROUT_RETURN_IF_ERROR(ended);
  return timer() - start;
}

}  // namespace crout
