// SPDX-License-Identifier: Apache-2.0

// SparseOps on a GPU.
#ifndef CROUT_KERNELS_CUDA_OPS_CUDA_SPARSE_OPS_H_
#define CROUT_KERNELS_CUDA_OPS_CUDA_SPARSE_OPS_H_

#include "kernels/cuda/device/cuda_context.h"
#include "kernels/sparse_ops.h"

namespace crout::cuda {

// Each call enqueues a few kernels and allocates nothing. A warp or a block sums each row or column
// in a fixed order, without atomics.
class CudaSparseOps final : public SparseOps {
 public:
  explicit CudaSparseOps(Context& context) : context_(context) {}

  absl::Status Inspect(const AnySparse& a, DType converted_to) override;
  absl::Status Densify(const AnySparse& a, const double* row, const double* col,
                       const AnyMatrix& out) override;
  absl::Status EquilibrationScales(const AnySparse& a, double* row, double* col) override;
  absl::Status Residual(const AnySparse& a, Op op, double norm_op_a, const AnyMatrix& x,
                        const AnyMatrix& b, const AnyMatrix& r) override;
  absl::Status WideRangeResidual(const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                                 const AnyMatrix& r) override;
  absl::Status AbsProduct(const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                          const MatrixView<double>& w) override;

 private:
  Context& context_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_CUDA_SPARSE_OPS_H_
