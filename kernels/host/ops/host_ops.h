// SPDX-License-Identifier: Apache-2.0

// MatrixOps, SparseOps and KrylovOps on the host.
#ifndef CROUT_KERNELS_HOST_OPS_HOST_OPS_H_
#define CROUT_KERNELS_HOST_OPS_HOST_OPS_H_

#include "kernels/execution_context.h"
#include "kernels/host/device/executor.h"
#include "kernels/host/ops/scratch.h"
#include "kernels/krylov_ops.h"
#include "kernels/matrix_ops.h"
#include "kernels/sparse_ops.h"

namespace crout::host {

// Synchronous: work is done when a call returns. One thread at a time may use an object; other
// HostOps may use the same executor concurrently.
class HostOps final : public MatrixOps {
 public:
  HostOps(Executor& executor, ExecutionContext& context, DeviceReport& report)
      : executor_(executor), context_(context), report_(report) {}

  absl::Status Import(const PackedMatrix& in, const AnyMatrix& out) override;
  absl::Status Export(const AnyMatrix& in, const PackedMatrix& layout, std::byte* out) override;
  absl::Status CopyScaled(const AnyMatrix& in, const double* row, const double* col,
                          const AnyMatrix& out) override;
  absl::Status EquilibrationScales(const AnyMatrix& a, double* row, double* col) override;
  absl::Status ColumnScales(const AnyMatrix& in, const double* row, int exponent, double* down,
                            double* up) override;
  absl::Status StartProbe(const AnyMatrix& a, const FactorProbe& probe) override;
  absl::Status InspectFactor(const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                             const FactorProbe& probe) override;
  absl::Status InspectPivots(const AnyMatrix& lu) override;
  absl::Status Residual(const AnyMatrix& a, Op op, double norm_op_a, const AnyMatrix& x,
                        const AnyMatrix& b, const AnyMatrix& r) override;
  absl::Status WideRangeResidual(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                                 const AnyMatrix& r) override;
  absl::Status ComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w) override;
  absl::Status AbsProduct(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                          const MatrixView<double>& w) override;
  absl::Status Add(const AnyMatrix& d, const AnyMatrix& x) override;
  absl::Status SetEntries(const EntryList& entries, const AnyMatrix& a) override;
  absl::Status SumValues(const ValueMap& map, DType dtype, const std::byte* values,
                         std::byte* out) override;
  absl::Status Multiply(double alpha, Op op, const AnyMatrix& a, const AnyMatrix& b, double beta,
                        const AnyMatrix& c) override;
  absl::Status CopyOnDevice(const void* from, void* to, size_t bytes) override;
  absl::Status CopyToDevice(const void* host, void* device, size_t bytes) override;
  absl::Status CopyToHost(const void* device, void* host, size_t bytes) override;

 private:
  Executor& executor_;
  const ExecutionContext& context_;
  DeviceReport& report_;
  Scratch scratch_;
};

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

#endif  // CROUT_KERNELS_HOST_OPS_HOST_OPS_H_
