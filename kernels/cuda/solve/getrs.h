// SPDX-License-Identifier: Apache-2.0

// Solves by cuSOLVER.
#ifndef CROUT_KERNELS_CUDA_SOLVE_GETRS_H_
#define CROUT_KERNELS_CUDA_SOLVE_GETRS_H_

#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/lu_algorithm.h"

namespace crout::cuda {

// op(A) X = B by cusolverDnXgetrs, for factors with the unit diagonal in L. Needs no workspace.
class CudaGetrs final : public TriangularSolver {
 public:
  explicit CudaGetrs(const DeviceCore& core) : core_(core) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {.name = "getrs",
                                             .description = "cuSOLVER cusolverDnXgetrs",
                                             .types = kAllTypes,
                                             .solves_with = {UnitDiagonal::kL},
                                             .is_timed = true};
    return kTraits;
  }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override;
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, int64_t) const override { return 0; }
  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double tolerance,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override;

 private:
  const DeviceCore& core_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_SOLVE_GETRS_H_
