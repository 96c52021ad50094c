// Runs methods of a device by themselves, with no job around them, in any of the four types.
#ifndef CROUT_TESTS_SUPPORT_METHOD_RUNNER_H_
#define CROUT_TESTS_SUPPORT_METHOD_RUNNER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "tests/support/gallery.h"

namespace crout::testing {

// What LuAlgorithm::Factor left, in the type that it computed in and unpacked.
struct MethodFactor {
  int64_t n = 0;
  DType dtype = DType::kFloat64;
  UnitDiagonal unit_diagonal = UnitDiagonal::kL;
  int64_t info = 0;
  std::vector<std::byte> packed;
  ComplexMatrix lu;
  std::vector<int64_t> ipiv;
  IterationReport iterations;  // of an iterative method
};

// What DirectSolver::Solve left.
struct DirectSolution {
  ComplexMatrix x;
  int64_t info = 0;
  std::vector<int64_t> ipiv;  // gauss_jordan's, which it keeps in its workspace
};

// On one context of a device. Used by one thread at a time. Elements of matrices in a real type are
// real.
class MethodRunner {
 public:
  explicit MethodRunner(Device& device);

  ExecutionContext& context() { return *context_; }

  // The factor in the device's memory, where it stays as long as this lives.
  absl::StatusOr<FactorView> Keep(const MethodFactor& factor);

  // Of Factor or Finish what is not OK.
  absl::StatusOr<MethodFactor> Factor(
      std::string_view algorithm, const ComplexMatrix& a, int64_t n, DType dtype,
      const LuParameters& parameters = {}, StopRequested stop = [] { return false; });

  // With a factor that is prepared here where the solver needs it.
  absl::StatusOr<ComplexMatrix> Solve(std::string_view solver, const MethodFactor& factor, Op op,
                                      const ComplexMatrix& b, int64_t nrhs, double tolerance = 0);

  // gauss_jordan.
  absl::StatusOr<DirectSolution> SolveDirectly(
      const ComplexMatrix& a, int64_t n, const ComplexMatrix& b, int64_t nrhs, DType dtype,
      StopRequested stop = [] { return false; });

 private:
  // A copy of `bytes`, and the bytes of one.
  absl::StatusOr<Buffer> Send(std::span<const std::byte> bytes);
  absl::Status Receive(const void* from, std::span<std::byte> bytes);

  Device& device_;
  std::unique_ptr<ExecutionContext> context_;
  std::vector<Buffer> kept_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_METHOD_RUNNER_H_
