#include "tests/support/method_runner.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "kernels/algorithm_registry.h"
#include "kernels/util/status_macros.h"

namespace crout::testing {
namespace {

// A packed matrix as one in the device's memory.
AnyMatrix View(std::vector<std::byte>& packed, DType dtype, int64_t rows, int64_t cols) {
  return {packed.data(), dtype, rows, cols, std::max<int64_t>(1, rows)};
}

ComplexMatrix Elements(const std::vector<std::byte>& packed, DType dtype, int64_t rows,
                       int64_t cols) {
  return Unpacked<std::complex<double>>(packed.data(),
                                        {nullptr, dtype, Layout::kColumnMajor, rows, cols});
}

}  // namespace

FactorView MethodFactor::view() { return {View(packed, dtype, n, n), ipiv.data(), unit_diagonal}; }

MethodRunner::MethodRunner(Device& device) : device_(device) {
  auto context = device.CreateContext();
  if (!context.ok()) std::abort();  // No test starts on a broken device.
  context_ = *std::move(context);
}

absl::StatusOr<MethodFactor> MethodRunner::Factor(std::string_view algorithm,
                                                  const ComplexMatrix& a, int64_t n, DType dtype,
                                                  const LuParameters& parameters,
                                                  StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(const LuAlgorithm* method, FindAlgorithm(device_, algorithm, dtype, n));
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, method->WorkspaceBytes(dtype, n, parameters));
  std::vector<std::byte> workspace(bytes);
  MethodFactor factor;
  factor.n = n;
  factor.dtype = dtype;
  factor.unit_diagonal = method->traits().unit_diagonal;
  factor.packed = Packed(a, n, n, dtype);
  factor.ipiv.resize(n);
  CROUT_RETURN_IF_ERROR(method->Factor(*context_, View(factor.packed, dtype, n, n),
                                       factor.ipiv.data(), workspace, parameters, stop));
  CROUT_RETURN_IF_ERROR(context_->Synchronize());
  CROUT_RETURN_IF_ERROR(method->Finish(*context_, workspace,
                                       method->traits().iterative ? &factor.iterations : nullptr));
  factor.info = context_->report().info;
  factor.lu = Elements(factor.packed, dtype, n, n);
  return factor;
}

absl::StatusOr<ComplexMatrix> MethodRunner::Solve(std::string_view solver, MethodFactor& factor,
                                                  Op op, const ComplexMatrix& b, int64_t nrhs,
                                                  double tolerance) {
  CROUT_ASSIGN_OR_RETURN(
      const TriangularSolver* method,
      FindSolver(device_, solver, factor.unit_diagonal, factor.dtype, factor.n, nrhs));
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, method->WorkspaceBytes(factor.dtype, factor.n, nrhs));
  std::vector<std::byte> workspace(bytes);
  std::vector<std::byte> x = Packed(b, factor.n, nrhs, factor.dtype);
  CROUT_RETURN_IF_ERROR(method->Solve(*context_, factor.view(), op, tolerance,
                                      View(x, factor.dtype, factor.n, nrhs), workspace));
  CROUT_RETURN_IF_ERROR(context_->Synchronize());
  return Elements(x, factor.dtype, factor.n, nrhs);
}

absl::StatusOr<DirectSolution> MethodRunner::SolveDirectly(const ComplexMatrix& a, int64_t n,
                                                           const ComplexMatrix& b, int64_t nrhs,
                                                           DType dtype, StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(const DirectSolver* method,
                         FindDirectSolver(device_, "gauss_jordan", dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, method->WorkspaceBytes(dtype, n, nrhs));
  std::vector<std::byte> workspace(bytes);
  std::vector<std::byte> lhs = Packed(a, n, n, dtype);
  std::vector<std::byte> rhs = Packed(b, n, nrhs, dtype);
  CROUT_RETURN_IF_ERROR(
      method->Solve(*context_, View(lhs, dtype, n, n), View(rhs, dtype, n, nrhs), workspace, stop));
  CROUT_RETURN_IF_ERROR(context_->Synchronize());
  const auto* ipiv = reinterpret_cast<const int64_t*>(workspace.data());
  return DirectSolution{Elements(rhs, dtype, n, nrhs), context_->report().info, {ipiv, ipiv + n}};
}

}  // namespace crout::testing
