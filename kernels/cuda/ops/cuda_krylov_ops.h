// SPDX-License-Identifier: Apache-2.0

// KrylovOps on a GPU.
#ifndef CROUT_KERNELS_CUDA_OPS_CUDA_KRYLOV_OPS_H_
#define CROUT_KERNELS_CUDA_OPS_CUDA_KRYLOV_OPS_H_

#include "kernels/cuda/device/cuda_context.h"
#include "kernels/krylov_ops.h"

namespace crout::cuda {

// Each call enqueues one kernel, or one batch of cuBLAS's gemv, and allocates nothing.
class CudaKrylovOps final : public KrylovOps {
 public:
  explicit CudaKrylovOps(Context& context) : context_(context) {}

  absl::Status Dots(const KrylovBases& v, const AnyMatrix& w, const AnyMatrix& h) override;
  absl::Status AddCombination(double alpha, const KrylovBases& v, const AnyMatrix& h,
                              const AnyMatrix& w) override;
  absl::Status ScaleColumns(const double* scales, const AnyMatrix& w) override;
  absl::Status ColumnMaxAbs(const AnyMatrix& w, double* most) override;

 private:
  Context& context_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_CUDA_KRYLOV_OPS_H_
