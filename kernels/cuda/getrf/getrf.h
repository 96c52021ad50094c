// SPDX-License-Identifier: Apache-2.0

// LU by cuSOLVER.
#ifndef CROUT_KERNELS_CUDA_GETRF_GETRF_H_
#define CROUT_KERNELS_CUDA_GETRF_GETRF_H_

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/cuda/device/cuda_handles.h"
#include "kernels/lu_algorithm.h"
#include "kernels/util/mutex.h"

namespace crout::cuda {

// PA = LU by cusolverDnXgetrf with CUSOLVER_ALG_0, the fastest variant; its workspace has about n*n
// elements. It runs to completion and cannot be cancelled.
class CudaGetrf final : public LuAlgorithm {
 public:
  static absl::StatusOr<std::unique_ptr<LuAlgorithm>> Create(DeviceCore& core);

  const MethodTraits& traits() const override;
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                        const LuParameters& parameters) const override;
  double PredictSeconds(DType dtype, int64_t n) const override;
  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters& parameters,
                      StopRequested stop) const override;

 private:
  explicit CudaGetrf(DeviceCore& core) : core_(core) {}

  DeviceCore& core_;
  // For workspace queries, which may come before any context exists.
  mutable Mutex mutex_;
  CusolverHandle handle_ ABSL_GUARDED_BY(mutex_);
  CusolverParams params_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_GETRF_GETRF_H_
