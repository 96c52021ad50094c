// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/ops/host_ops.h"

#include "kernels/host/device/strips.h"
#include "kernels/host/ops/blas.h"
#include "kernels/host/ops/matrix_functions.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

// Width by the number of elements a product with `columns` vectors reads.
Width WidthFor(const AnySparse& a, int64_t columns = 1) {
  return host::WidthFor((a.n + a.nonzeros) * columns);
}

// Operations of a product of `a` and a column.
double ProductFlops(const AnySparse& a) {
  return MultiplyAddFlops(a.dtype) * static_cast<double>(a.n + a.nonzeros);
}

}  // namespace

absl::Status HostSparseOps::Inspect(const AnySparse& a, DType converted_to) {
  executor_.Run(WidthFor(a),
                [&](int cores) { report_.matrix = ComputeMatrixStats(cores, a, converted_to); });
  return absl::OkStatus();
}

absl::Status HostSparseOps::Densify(const AnySparse& a, const double* row, const double* col,
                                    const AnyMatrix& out) {
  executor_.Run(host::WidthFor(out.rows * out.cols),
                [&](int cores) { ScaleInto(cores, a, row, col, out); });
  return absl::OkStatus();
}

absl::Status HostSparseOps::EquilibrationScales(const AnySparse& a, double* row, double* col) {
  executor_.Run(WidthFor(a), [&](int cores) { report_.scale = ComputeScales(cores, a, row, col); });
  return absl::OkStatus();
}

absl::Status HostSparseOps::Residual(const AnySparse& a, Op op, double norm_op_a,
                                     const AnyMatrix& x, const AnyMatrix& b, const AnyMatrix& r) {
  const auto compute = [&](int cores, int64_t begin, int64_t count) {
    ComputeResidual(cores, a, op, Columns(x, begin, count), Columns(b, begin, count),
                    Columns(r, begin, count));
  };
  const Width width = WidthFor(a, b.cols);
  CROUT_RETURN_IF_ERROR(ForStrips(executor_, width, context_, b.cols, ProductFlops(a), compute));
  executor_.Run(Width::kOneCore, [&](int) {
    report_.residual.backward_error = NormwiseBackwardError(norm_op_a, x, b, r);
  });
  return absl::OkStatus();
}

absl::Status HostSparseOps::WideRangeResidual(const AnySparse& a, Op op, const AnyMatrix& x,
                                              const AnyMatrix& b, const AnyMatrix& r) {
  executor_.Run(WidthFor(a, b.cols), [&](int cores) {
    report_.residual =
        ComputeWideRangeResidual(cores, a, op, x, b, r, [&] { return context_.stop_requested(); });
  });
  return CheckNotStopped([&] { return context_.stop_requested(); });
}

absl::Status HostSparseOps::AbsProduct(const AnySparse& a, Op op, const AnyMatrix& x,
                                       const AnyMatrix& b, const MatrixView<double>& w) {
  const auto compute = [&](int cores, int64_t begin, int64_t count) {
    ComputeAbsProduct(cores, a, op, Columns(x, begin, count), Columns(b, begin, count),
                      Block(w, 0, begin, w.rows, count));
  };
  return ForStrips(executor_, WidthFor(a, b.cols), context_, b.cols, ProductFlops(a), compute);
}

}  // namespace crout::host
