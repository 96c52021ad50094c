// SPDX-License-Identifier: Apache-2.0

#include "tests/support/runners/method_runner.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "kernels/algorithm_registry.h"
#include "kernels/util/status_macros.h"

namespace crout::testing {
namespace {

// Views a packed matrix in device memory.
AnyMatrix View(const Buffer& packed, DType dtype, int64_t rows, int64_t cols) {
  return {packed.data(), dtype, rows, cols, std::max<int64_t>(1, rows)};
}

ComplexMatrix Elements(const std::vector<std::byte>& packed, DType dtype, int64_t rows,
                       int64_t cols) {
  return Unpacked<std::complex<double>>(packed.data(),
                                        {nullptr, dtype, Layout::kColumnMajor, rows, cols});
}

std::span<std::byte> Bytes(std::vector<int64_t>& values) {
  return std::as_writable_bytes(std::span(values));
}

}  // namespace

MethodRunner::MethodRunner(Device& device) : device_(device) {
  auto context = device.CreateContext();
  if (!context.ok()) std::abort();  // No test starts on a broken device.
  context_ = *std::move(context);
}

absl::StatusOr<Buffer> MethodRunner::Send(std::span<const std::byte> bytes) {
  CROUT_ASSIGN_OR_RETURN(Buffer buffer, device_.memory().Allocate(bytes.size()));
  CROUT_RETURN_IF_ERROR(context_->ops().CopyToDevice(bytes.data(), buffer.data(), bytes.size()));
  CROUT_RETURN_IF_ERROR(context_->Synchronize());
  return buffer;
}

absl::Status MethodRunner::Receive(const void* from, std::span<std::byte> bytes) {
  CROUT_RETURN_IF_ERROR(context_->ops().CopyToHost(from, bytes.data(), bytes.size()));
  return context_->Synchronize();
}

absl::StatusOr<FactorView> MethodRunner::Keep(const MethodFactor& factor) {
  CROUT_ASSIGN_OR_RETURN(Buffer lu, Send(factor.packed));
  CROUT_ASSIGN_OR_RETURN(Buffer ipiv, Send(std::as_bytes(std::span(factor.ipiv))));
  const FactorView view = {View(lu, factor.dtype, factor.n, factor.n), ipiv.as<int64_t>(),
                           factor.unit_diagonal};
  kept_.push_back(std::move(lu));
  kept_.push_back(std::move(ipiv));
  return view;
}

absl::StatusOr<MethodFactor> MethodRunner::Factor(std::string_view algorithm,
                                                  const ComplexMatrix& a, int64_t n, DType dtype,
                                                  const LuParameters& parameters,
                                                  StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(const LuAlgorithm* method, FindAlgorithm(device_, algorithm, dtype, n));
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, method->WorkspaceBytes(dtype, n, parameters));
  CROUT_ASSIGN_OR_RETURN(const Buffer memory, device_.memory().Allocate(bytes));
  const std::span<std::byte> workspace = {memory.data(), bytes};
  MethodFactor factor;
  factor.n = n;
  factor.dtype = dtype;
  factor.unit_diagonal = method->traits().unit_diagonal;
  factor.packed = Packed(a, n, n, dtype);
  factor.ipiv.resize(n);
  CROUT_ASSIGN_OR_RETURN(const Buffer lu, Send(factor.packed));
  CROUT_ASSIGN_OR_RETURN(const Buffer ipiv, Send(Bytes(factor.ipiv)));
  const absl::Status enqueued = method->Factor(*context_, View(lu, dtype, n, n), ipiv.as<int64_t>(),
                                               workspace, parameters, stop);
  // Also wait for work that was enqueued before a failure.
  CROUT_RETURN_IF_ERROR(context_->Synchronize());
  CROUT_RETURN_IF_ERROR(enqueued);
  CROUT_RETURN_IF_ERROR(method->Finish(*context_, workspace,
                                       method->traits().iterative ? &factor.iterations : nullptr));
  factor.info = context_->report().info;
  CROUT_RETURN_IF_ERROR(Receive(lu.data(), factor.packed));
  CROUT_RETURN_IF_ERROR(Receive(ipiv.data(), Bytes(factor.ipiv)));
  factor.lu = Elements(factor.packed, dtype, n, n);
  return factor;
}

absl::StatusOr<ComplexMatrix> MethodRunner::Solve(std::string_view solver,
                                                  const MethodFactor& factor, Op op,
                                                  const ComplexMatrix& b, int64_t nrhs,
                                                  double tolerance) {
  FactorSummary summary;
  summary.n = factor.n;
  summary.factor_dtype = factor.dtype;
  summary.unit_diagonal = factor.unit_diagonal;
  summary.preparation.emplace();  // the solver may require a preparation
  CROUT_ASSIGN_OR_RETURN(const TriangularSolver* method,
                         FindSolver(device_, solver, summary, nrhs));
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, method->WorkspaceBytes(factor.dtype, factor.n, nrhs));
  CROUT_ASSIGN_OR_RETURN(const Buffer memory, device_.memory().Allocate(bytes));
  CROUT_ASSIGN_OR_RETURN(const Buffer lu, Send(factor.packed));
  CROUT_ASSIGN_OR_RETURN(const Buffer ipiv, Send(std::as_bytes(std::span(factor.ipiv))));
  std::vector<std::byte> x = Packed(b, factor.n, nrhs, factor.dtype);
  CROUT_ASSIGN_OR_RETURN(const Buffer on_device, Send(x));
  FactorView view = {View(lu, factor.dtype, factor.n, factor.n), ipiv.as<int64_t>(),
                     factor.unit_diagonal};
  Buffer prepared;
  if (method->needs_preparation()) {
    CROUT_ASSIGN_OR_RETURN(const size_t size, method->PreparedBytes(factor.dtype, factor.n));
    CROUT_ASSIGN_OR_RETURN(prepared, device_.memory().Allocate(size));
    CROUT_RETURN_IF_ERROR(method->Prepare(*context_, view, {prepared.data(), size}));
    CROUT_RETURN_IF_ERROR(context_->Synchronize());
    view.prepared = prepared.data();
    view.preparation = context_->report().preparation;
  }
  CROUT_RETURN_IF_ERROR(method->Solve(*context_, view, op, tolerance,
                                      View(on_device, factor.dtype, factor.n, nrhs),
                                      {memory.data(), bytes}));
  CROUT_RETURN_IF_ERROR(Receive(on_device.data(), x));
  return Elements(x, factor.dtype, factor.n, nrhs);
}

absl::StatusOr<DirectSolution> MethodRunner::SolveDirectly(const ComplexMatrix& a, int64_t n,
                                                           const ComplexMatrix& b, int64_t nrhs,
                                                           DType dtype, StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(const DirectSolver* method,
                         FindDirectSolver(device_, "gauss_jordan", dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, method->WorkspaceBytes(dtype, n, nrhs));
  CROUT_ASSIGN_OR_RETURN(const Buffer memory, device_.memory().Allocate(bytes));
  CROUT_ASSIGN_OR_RETURN(const Buffer lhs, Send(Packed(a, n, n, dtype)));
  std::vector<std::byte> x = Packed(b, n, nrhs, dtype);
  CROUT_ASSIGN_OR_RETURN(const Buffer rhs, Send(x));
  const absl::Status enqueued = method->Solve(
      *context_, View(lhs, dtype, n, n), View(rhs, dtype, n, nrhs), {memory.data(), bytes}, stop);
  CROUT_RETURN_IF_ERROR(context_->Synchronize());
  CROUT_RETURN_IF_ERROR(enqueued);
  DirectSolution solution;
  solution.info = context_->report().info;
  CROUT_RETURN_IF_ERROR(context_->ops().InspectPivots(View(lhs, dtype, n, n)));
  CROUT_RETURN_IF_ERROR(context_->Synchronize());
  solution.min_pivot = context_->report().factor.min_pivot;
  solution.max_pivot = context_->report().factor.max_pivot;
  solution.ipiv.resize(n);
  CROUT_RETURN_IF_ERROR(Receive(rhs.data(), x));
  // gauss_jordan stores ipiv at the end of its workspace.
  CROUT_RETURN_IF_ERROR(Receive(memory.data() + bytes - n * sizeof(int64_t), Bytes(solution.ipiv)));
  solution.x = Elements(x, dtype, n, nrhs);
  return solution;
}

}  // namespace crout::testing
