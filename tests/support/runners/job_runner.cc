// SPDX-License-Identifier: Apache-2.0

#include "tests/support/runners/job_runner.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "kernels/util/status_macros.h"
#include "tests/support/matrices/packed_sparse.h"

namespace crout::testing {
namespace {

bool Never() { return false; }

std::unique_ptr<ExecutionContext> NewContext(Device& device) {
  auto context = device.CreateContext();
  if (!context.ok()) std::abort();  // No test starts on a broken device.
  return *std::move(context);
}

}  // namespace

int64_t FirstZeroPivot(const HostFactor& factor, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    if (factor.lu[j + j * n] == 0) return j + 1;
  }
  return 0;
}

StopRequested JobRunner::NeverStop() { return Never; }

JobRunner::JobRunner(Device& device) : device_(device), context_(NewContext(device)) {}

absl::StatusOr<Buffer> JobRunner::Upload(const std::vector<std::byte>& bytes) {
  CROUT_ASSIGN_OR_RETURN(Buffer buffer, device_.memory().Allocate(bytes.size()));
  CROUT_ASSIGN_OR_RETURN(auto uploader, device_.StartUpload({buffer.data(), buffer.size()}));
  for (size_t sent = 0; sent < bytes.size();) {
    const std::span<std::byte> span = uploader->Reserve([] {});
    if (span.empty()) continue;  // All staging blocks are still being copied.
    std::memcpy(span.data(), bytes.data() + sent, span.size());
    CROUT_RETURN_IF_ERROR(uploader->Commit(span.size()));
    sent += span.size();
  }
  CROUT_RETURN_IF_ERROR(uploader->Join(*context_));
  return buffer;
}

absl::StatusOr<FactorizeOptions> JobRunner::Options(const FactorRequest& request, int64_t n) const {
  FactorizeOptions options;
  CROUT_ASSIGN_OR_RETURN(options.algorithm,
                         FindAlgorithm(device_, request.algorithm, request.factor_dtype, n));
  options.factor_dtype = request.factor_dtype;
  options.equilibrate = request.equilibrate;
  options.keep_matrix = request.keep_matrix;
  options.determinant = request.determinant;
  options.parameters = request.parameters;
  if (request.condition) {
    CROUT_ASSIGN_OR_RETURN(options.condition_solver,
                           FindSolver(device_, "auto", options.algorithm->traits().unit_diagonal,
                                      request.factor_dtype, n, 1));
  }
  return options;
}

absl::StatusOr<SolveOptions> JobRunner::Options(const SolveRequest& request,
                                                const FactorSummary& factor, int64_t nrhs) const {
  SolveOptions options;
  CROUT_ASSIGN_OR_RETURN(options.solver,
                         factor.sparse ? FindSolver(device_, request.solver, factor, nrhs)
                                       : FindSolver(device_, request.solver, factor.unit_diagonal,
                                                    factor.factor_dtype, factor.n, nrhs));
  options.op = request.op;
  options.verify = request.verify;
  options.componentwise_error = request.componentwise_error;
  options.error_bound = request.error_bound;
  options.max_refinement_steps = request.max_refinement_steps;
  options.refine_componentwise = request.refine_componentwise;
  return options;
}

absl::StatusOr<Factorization> JobRunner::Factor(const HostMatrix& a, int64_t n,
                                                const FactorRequest& request, StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(const FactorizeOptions options, Options(request, n));
  const PackedMatrix shape{nullptr, request.matrix_dtype, request.layout, n, n};
  if (request.sparse) {
    const PackedSparse packed = PackSparse(a, n, request.matrix_dtype);
    CROUT_ASSIGN_OR_RETURN(const FactorizePlan plan,
                           PlanFactorize(options, shape, packed.nonzeros));
    CROUT_ASSIGN_OR_RETURN(Buffer upload, Upload(packed.bytes));
    return crout::Factorize(*context_, plan, std::move(upload), stop, timings_);
  }
  return Factor(a, n, request.matrix_dtype, request.layout, options, stop);
}

absl::StatusOr<Factorization> JobRunner::Factor(const HostMatrix& a, int64_t n, DType dtype,
                                                Layout layout, const FactorizeOptions& options,
                                                StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(Buffer upload, Upload(Packed(a, n, n, dtype, layout)));
  return crout::Factorize(*context_, std::move(upload), {nullptr, dtype, layout, n, n}, options,
                          stop, timings_);
}

absl::StatusOr<Solution> JobRunner::Solve(const Factorization& factor, const HostMatrix& b,
                                          int64_t nrhs, const SolveRequest& request,
                                          StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(const SolveOptions options, Options(request, factor.summary, nrhs));
  return Solve(factor, b, nrhs, request.dtype, request.layout, options, stop);
}

absl::StatusOr<Solution> JobRunner::Solve(const Factorization& factor, const HostMatrix& b,
                                          int64_t nrhs, DType dtype, Layout layout,
                                          const SolveOptions& options, StopRequested stop) {
  const int64_t n = factor.summary.n;
  CROUT_ASSIGN_OR_RETURN(Buffer upload, Upload(Packed(b, n, nrhs, dtype, layout)));
  const PackedMatrix shape{nullptr, dtype, layout, n, nrhs};
  std::vector<std::byte> out(shape.bytes());
  Solution solution;
  CROUT_ASSIGN_OR_RETURN(solution.summary, crout::Solve(*context_, factor, std::move(upload), shape,
                                                        options, out.data(), stop, timings_));
  solution.x = Unpacked(out.data(), shape);
  return solution;
}

absl::StatusOr<Factorization> JobRunner::FactorComplex(const ComplexMatrix& a, int64_t n,
                                                       const FactorRequest& request,
                                                       StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(const FactorizeOptions options, Options(request, n));
  CROUT_ASSIGN_OR_RETURN(Buffer upload,
                         Upload(Packed(a, n, n, request.matrix_dtype, request.layout)));
  const PackedMatrix shape{nullptr, request.matrix_dtype, request.layout, n, n};
  return crout::Factorize(*context_, std::move(upload), shape, options, stop, timings_);
}

absl::StatusOr<ComplexSolution> JobRunner::SolveComplex(const Factorization& factor,
                                                        const ComplexMatrix& b, int64_t nrhs,
                                                        const SolveRequest& request) {
  const int64_t n = factor.summary.n;
  CROUT_ASSIGN_OR_RETURN(const SolveOptions options, Options(request, factor.summary, nrhs));
  CROUT_ASSIGN_OR_RETURN(Buffer upload, Upload(Packed(b, n, nrhs, request.dtype, request.layout)));
  const PackedMatrix shape{nullptr, request.dtype, request.layout, n, nrhs};
  CROUT_ASSIGN_OR_RETURN(const SolvePlan plan, PlanSolve(options, factor.summary, shape));
  std::vector<std::byte> out(plan.delivered.bytes());
  ComplexSolution solution;
  CROUT_ASSIGN_OR_RETURN(solution.summary, crout::Solve(*context_, plan, factor, std::move(upload),
                                                        out.data(), NeverStop(), timings_));
  solution.x = Unpacked<std::complex<double>>(out.data(), plan.delivered);
  solution.dtype = plan.delivered.dtype;
  return solution;
}

absl::StatusOr<HostFactor> JobRunner::Download(const Factorization& factor) {
  const int64_t n = factor.summary.n;
  HostFactor result;
  std::vector<std::byte> lu(factor.lu().size());
  result.ipiv.resize(n);
  result.scales.resize(factor.scales().size() / sizeof(double));
  if (n > 0) {
    MatrixOps& ops = context_->ops();
    CROUT_RETURN_IF_ERROR(ops.CopyToHost(factor.lu().data(), lu.data(), lu.size()));
    CROUT_RETURN_IF_ERROR(
        ops.CopyToHost(factor.ipiv().data(), result.ipiv.data(), n * sizeof(int64_t)));
    if (!result.scales.empty()) {
      CROUT_RETURN_IF_ERROR(
          ops.CopyToHost(factor.scales().data(), result.scales.data(), factor.scales().size()));
    }
    CROUT_RETURN_IF_ERROR(context_->Synchronize());
  }
  result.lu =
      Unpacked(lu.data(), {nullptr, factor.summary.factor_dtype, Layout::kColumnMajor, n, n});
  return result;
}

}  // namespace crout::testing
