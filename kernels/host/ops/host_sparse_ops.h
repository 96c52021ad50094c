// SPDX-License-Identifier: Apache-2.0

// SparseOps in host memory.
#ifndef CROUT_KERNELS_HOST_OPS_HOST_SPARSE_OPS_H_
#define CROUT_KERNELS_HOST_OPS_HOST_SPARSE_OPS_H_

#include "kernels/execution_context.h"
#include "kernels/host/device/executor.h"
#include "kernels/sparse_ops.h"

namespace crout::host {

// Synchronous: work is done when a call returns. One thread at a time may use an object; other ops
// may use the same executor concurrently. One thread computes each line of a result, so the bits do
// not depend on the number of threads.
class HostSparseOps final : public SparseOps {
 public:
  HostSparseOps(Executor& executor, ExecutionContext& context, DeviceReport& report)
      : executor_(executor), context_(context), report_(report) {}

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
  Executor& executor_;
  const ExecutionContext& context_;
  DeviceReport& report_;
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_HOST_SPARSE_OPS_H_
