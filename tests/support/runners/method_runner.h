// SPDX-License-Identifier: Apache-2.0

// Runs the methods of a device directly, without a job, in any of the four types.
#ifndef CROUT_TESTS_SUPPORT_RUNNERS_METHOD_RUNNER_H_
#define CROUT_TESTS_SUPPORT_RUNNERS_METHOD_RUNNER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "tests/support/matrices/gallery.h"

namespace crout::testing {

// The result of LuAlgorithm::Factor: L and U in getrf's storage, both packed in the type of the
// computation and unpacked.
struct MethodFactor {
  int64_t n = 0;
  DType dtype = DType::kFloat64;
  UnitDiagonal unit_diagonal = UnitDiagonal::kL;
  int64_t info = 0;
  std::vector<std::byte> packed;
  ComplexMatrix lu;            // n x n
  std::vector<int64_t> ipiv;   // n elements, 1-based
  IterationReport iterations;  // for iterative methods
};

// The result of DirectSolver::Solve.
struct DirectSolution {
  ComplexMatrix x;  // n x nrhs
  int64_t info = 0;
  std::vector<int64_t> ipiv;  // read from the workspace of gauss_jordan
  double min_pivot = 0;
  double max_pivot = 0;
};

// Runs methods on one context of a device, which must outlive this object. `a` is n x n and `b` is
// n x nrhs; elements must be real if the type is real. Functions return UNIMPLEMENTED if the device
// has no such method, and the errors of the method. Used by one thread at a time.
class MethodRunner {
 public:
  explicit MethodRunner(Device& device);

  ExecutionContext& context() { return *context_; }

  // Copies the factor to device memory, where it stays for the lifetime of this object.
  absl::StatusOr<FactorView> Keep(const MethodFactor& factor);

  // Calls Factor and Finish of the algorithm.
  absl::StatusOr<MethodFactor> Factor(
      std::string_view algorithm, const ComplexMatrix& a, int64_t n, DType dtype,
      const LuParameters& parameters = {}, StopRequested stop = [] { return false; });

  // Prepares the factor first if the solver needs it.
  absl::StatusOr<ComplexMatrix> Solve(std::string_view solver, const MethodFactor& factor, Op op,
                                      const ComplexMatrix& b, int64_t nrhs, double tolerance = 0);

  // Solves A X = B with "gauss_jordan".
  absl::StatusOr<DirectSolution> SolveDirectly(
      const ComplexMatrix& a, int64_t n, const ComplexMatrix& b, int64_t nrhs, DType dtype,
      StopRequested stop = [] { return false; });

 private:
  // Send copies `bytes` to a new device buffer. Receive copies device memory to `bytes`.
  absl::StatusOr<Buffer> Send(std::span<const std::byte> bytes);
  absl::Status Receive(const void* from, std::span<std::byte> bytes);

  Device& device_;
  std::unique_ptr<ExecutionContext> context_;
  std::vector<Buffer> kept_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_RUNNERS_METHOD_RUNNER_H_
