// SPDX-License-Identifier: Apache-2.0

// KrylovOps in host memory.
#ifndef CROUT_KERNELS_HOST_OPS_HOST_KRYLOV_OPS_H_
#define CROUT_KERNELS_HOST_OPS_HOST_KRYLOV_OPS_H_

#include "kernels/host/device/executor.h"
#include "kernels/krylov_ops.h"

namespace crout::host {

// Synchronous: work is done when a call returns. One thread at a time may use an object; other ops
// may use the same executor concurrently.
class HostKrylovOps final : public KrylovOps {
 public:
  explicit HostKrylovOps(Executor& executor) : executor_(executor) {}

  absl::Status Dots(const KrylovBases& v, const AnyMatrix& w, const AnyMatrix& h) override;
  absl::Status AddCombination(double alpha, const KrylovBases& v, const AnyMatrix& h,
                              const AnyMatrix& w) override;
  absl::Status ScaleColumns(const double* scales, const AnyMatrix& w) override;
  absl::Status ColumnMaxAbs(const AnyMatrix& w, double* most) override;

 private:
  Executor& executor_;
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_HOST_KRYLOV_OPS_H_
