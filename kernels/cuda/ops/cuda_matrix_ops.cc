#include "kernels/cuda/ops/cuda_matrix_ops.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/ops/blas.h"
#include "kernels/cuda/ops/convert.h"
#include "kernels/cuda/ops/entries.h"
#include "kernels/cuda/ops/equilibration.h"
#include "kernels/cuda/ops/factor_inspection.h"
#include "kernels/cuda/ops/factor_probe.h"
#include "kernels/cuda/ops/matrix_stats.h"
#include "kernels/cuda/ops/residual.h"
#include "kernels/cuda/ops/subtract_product.h"
#include "kernels/cuda/ops/wide_range_residual.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// From so many columns of x, or so many elements of A on, cuBLAS's gemm beats passes over A with a
// few columns each.
constexpr int64_t kGemmColumns = 9;
constexpr int64_t kGemmElements = int64_t{1} << 20;

// A packed row-major matrix is the transpose of a packed column-major one. Rows or columns of one
// element look the same in both orders.
struct PackedView {
  AnyMatrix matrix;
  bool transposed = false;
};

PackedView View(const PackedMatrix& packed, std::byte* data) {
  int64_t rows = packed.rows;
  int64_t cols = packed.cols;
  const bool transposed = packed.layout == Layout::kRowMajor && rows > 1 && cols > 1;
  if (transposed) std::swap(rows, cols);
  return {{data, packed.dtype, rows, cols, std::max<int64_t>(1, rows)}, transposed};
}

cudaError_t CopyOrTranspose(bool transpose, const AnyMatrix& from, const AnyMatrix& to,
                            cudaStream_t stream) {
  return transpose ? LaunchTranspose(from, to, stream) : LaunchCopy(from, to, stream);
}

}  // namespace

absl::Status CudaMatrixOps::Import(const PackedMatrix& in, const AnyMatrix& out) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  const PackedView view = View(in, const_cast<std::byte*>(in.data));  // only read
  PackedMatrix counted = in;
  if (!view.transposed) counted.layout = Layout::kColumnMajor;
  cudaError_t code = LaunchMatrixStats(counted, out.dtype, context_.scratch(),
                                       &context_.report().matrix, context_.stream());
  if (code == cudaSuccess && in.data != out.data) {
    code = CopyOrTranspose(view.transposed, view.matrix, out, context_.stream());
  }
  return context_.core().Observe(CudaStatus(code, "Import"));
}

absl::Status CudaMatrixOps::Export(const AnyMatrix& in, const PackedMatrix& layout,
                                   std::byte* out) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  const PackedView view = View(layout, out);
  return context_.core().Observe(
      CudaStatus(CopyOrTranspose(view.transposed, in, view.matrix, context_.stream()), "Export"));
}

absl::Status CudaMatrixOps::CopyScaled(const AnyMatrix& in, const double* row, const double* col,
                                       const AnyMatrix& out) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(
      CudaStatus(LaunchCopyScaled(in, row, col, out, context_.stream()), "CopyScaled"));
}

absl::Status CudaMatrixOps::EquilibrationScales(const AnyMatrix& a, double* row, double* col) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(
      CudaStatus(LaunchEquilibrationScales(a, row, col, context_.scratch(),
                                           &context_.report().scale, context_.stream()),
                 "EquilibrationScales"));
}

absl::Status CudaMatrixOps::ColumnScales(const AnyMatrix& in, const double* row, int exponent,
                                         double* down, double* up) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(CudaStatus(
      LaunchColumnScales(in, row, exponent, down, up, context_.stream()), "ColumnScales"));
}

absl::Status CudaMatrixOps::StartProbe(const AnyMatrix& a, const FactorProbe& probe) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(
      CudaStatus(LaunchProbeMatrix(a, probe, context_.stream()), "StartProbe"));
}

absl::Status CudaMatrixOps::InspectFactor(const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                                          const FactorProbe& probe) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  if (probe.work != nullptr) {
    CROUT_RETURN_IF_ERROR(context_.core().Observe(CudaStatus(
        LaunchProbeLower(lu, unit_in_u, ipiv, probe, context_.stream()), "InspectFactor")));
  }
  return context_.core().Observe(
      CudaStatus(LaunchInspectFactor(lu, unit_in_u, ipiv, probe, context_.scratch(),
                                     &context_.report().factor, context_.stream()),
                 "InspectFactor"));
}

absl::Status CudaMatrixOps::Residual(const AnyMatrix& a, Op op, double norm_op_a,
                                     const AnyMatrix& x, const AnyMatrix& b, const AnyMatrix& r) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  const bool large = x.cols >= kGemmColumns || a.rows * a.cols >= kGemmElements;
  const bool by_gemm = a.dtype == x.dtype && large && r.rows > 0 && x.rows > 0;
  if (by_gemm) {
    CROUT_RETURN_IF_ERROR(context_.core().Observe(NegativeProduct(a, op, x, r)));
  } else {
    CROUT_RETURN_IF_ERROR(context_.core().Observe(
        CudaStatus(LaunchResidual(a, op, x, b, r, context_.stream()), "Residual")));
  }
  return context_.core().Observe(
      CudaStatus(LaunchBackwardError(norm_op_a, x, b, r, by_gemm, context_.scratch(),
                                     &context_.report().residual, context_.stream()),
                 "Residual"));
}

absl::Status CudaMatrixOps::NegativeProduct(const AnyMatrix& a, Op op, const AnyMatrix& x,
                                            const AnyMatrix& r) {
  return DispatchWide(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T minus_one = -1;
    const T zero = 0;
    return CublasStatus(Gemm<T>(context_.cublas(), op, &minus_one, a.As<const T>(), x.As<const T>(),
                                &zero, r.As<T>()),
                        "cublasXgemm");
  });
}

absl::Status CudaMatrixOps::WideRangeResidual(const AnyMatrix& a, Op op, const AnyMatrix& x,
                                              const AnyMatrix& b, const AnyMatrix& r) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(
      CudaStatus(LaunchWideRangeResidual(a, op, x, b, r, context_.scratch(),
                                         &context_.report().residual, context_.stream()),
                 "WideRangeResidual"));
}

absl::Status CudaMatrixOps::ComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(
      CudaStatus(LaunchComponentwiseError(r, w, context_.scratch(), &context_.report().residual,
                                          context_.stream()),
                 "ComponentwiseError"));
}

absl::Status CudaMatrixOps::AbsProduct(const AnyMatrix& a, Op op, const AnyMatrix& x,
                                       const AnyMatrix& b, const MatrixView<double>& w) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(
      CudaStatus(LaunchAbsProduct(a, op, x, b, w, context_.stream()), "AbsProduct"));
}

absl::Status CudaMatrixOps::Add(const AnyMatrix& d, const AnyMatrix& x) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(CudaStatus(LaunchAdd(d, x, context_.stream()), "Add"));
}

absl::Status CudaMatrixOps::SetEntries(const EntryList& entries, const AnyMatrix& a) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(
      CudaStatus(LaunchSetEntries(entries, a, context_.scratch(), &context_.report().entries,
                                  context_.stream()),
                 "SetEntries"));
}

absl::Status CudaMatrixOps::MultiplySubtract(const AnyMatrix& a, const AnyMatrix& b,
                                             const AnyMatrix& c) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(DispatchDevice(c.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return SubtractProduct<T>(context_.cublas(), Op::kNone, a.As<const T>(), b.As<const T>(),
                              c.As<T>());
  }));
}

absl::Status CudaMatrixOps::CopyOnDevice(const void* from, void* to, size_t bytes) {
  return Copy(from, to, bytes, cudaMemcpyDeviceToDevice);
}

absl::Status CudaMatrixOps::CopyToDevice(const void* host, void* device, size_t bytes) {
  return Copy(host, device, bytes, cudaMemcpyHostToDevice);
}

absl::Status CudaMatrixOps::CopyToHost(const void* device, void* host, size_t bytes) {
  return Copy(device, host, bytes, cudaMemcpyDeviceToHost);
}

absl::Status CudaMatrixOps::Copy(const void* from, void* to, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(
      CudaStatus(cudaMemcpyAsync(to, from, bytes, kind, context_.stream()), "cudaMemcpyAsync"));
}

}  // namespace crout::cuda
