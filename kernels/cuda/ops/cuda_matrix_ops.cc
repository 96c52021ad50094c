// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/ops/cuda_ops.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/ops/blas.h"
#include "kernels/cuda/ops/convert.h"
#include "kernels/cuda/ops/matrix_kernels.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// From this number of columns of x, or of elements of A, on, cuBLAS's gemm is faster than passes
// over A with a few columns each.
constexpr int64_t kGemmColumns = 9;
constexpr int64_t kGemmElements = int64_t{1} << 20;

// A packed row-major matrix is the transpose of a packed column-major one. Matrices with one row or
// one column have the same layout in both orders.
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
  const PackedView view = View(in, const_cast<std::byte*>(in.data));  // only read
  PackedMatrix counted = in;
  if (!view.transposed) counted.layout = Layout::kColumnMajor;
  return context_.Enqueue("Import", [&](cudaStream_t stream) {
    const cudaError_t code = LaunchMatrixStats(counted, out.dtype, context_.scratch(),
                                               &context_.report().matrix, stream);
    if (code != cudaSuccess || in.data == out.data) return code;
    return CopyOrTranspose(view.transposed, view.matrix, out, stream);
  });
}

absl::Status CudaMatrixOps::Export(const AnyMatrix& in, const PackedMatrix& layout,
                                   std::byte* out) {
  const PackedView view = View(layout, out);
  return context_.Enqueue("Export", [&](cudaStream_t stream) {
    return CopyOrTranspose(view.transposed, in, view.matrix, stream);
  });
}

absl::Status CudaMatrixOps::CopyScaled(const AnyMatrix& in, const double* row, const double* col,
                                       const AnyMatrix& out) {
  return context_.Enqueue("CopyScaled", [&](cudaStream_t stream) {
    return LaunchCopyScaled(in, row, col, out, stream);
  });
}

absl::Status CudaMatrixOps::EquilibrationScales(const AnyMatrix& a, double* row, double* col) {
  return context_.Enqueue("EquilibrationScales", [&](cudaStream_t stream) {
    return LaunchEquilibrationScales(a, row, col, context_.scratch(), &context_.report().scale,
                                     stream);
  });
}

absl::Status CudaMatrixOps::ColumnScales(const AnyMatrix& in, const double* row, int exponent,
                                         double* down, double* up) {
  return context_.Enqueue("ColumnScales", [&](cudaStream_t stream) {
    return LaunchColumnScales(in, row, exponent, down, up, stream);
  });
}

absl::Status CudaMatrixOps::StartProbe(const AnyMatrix& a, const FactorProbe& probe) {
  return context_.Enqueue("StartProbe",
                          [&](cudaStream_t stream) { return LaunchProbeMatrix(a, probe, stream); });
}

absl::Status CudaMatrixOps::InspectFactor(const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                                          const FactorProbe& probe) {
  return context_.Enqueue("InspectFactor", [&](cudaStream_t stream) {
    if (probe.work != nullptr) {
      const cudaError_t code = LaunchProbeLower(lu, unit_in_u, ipiv, probe, stream);
      if (code != cudaSuccess) return code;
    }
    return LaunchInspectFactor(lu, unit_in_u, ipiv, probe, context_.scratch(),
                               &context_.report().factor, stream);
  });
}

absl::Status CudaMatrixOps::InspectPivots(const AnyMatrix& lu) {
  return context_.Enqueue("InspectPivots", [&](cudaStream_t stream) {
    return LaunchInspectPivots(lu, &context_.report().factor, stream);
  });
}

absl::Status CudaMatrixOps::Residual(const AnyMatrix& a, Op op, double norm_op_a,
                                     const AnyMatrix& x, const AnyMatrix& b, const AnyMatrix& r) {
  const bool large = x.cols >= kGemmColumns || a.rows * a.cols >= kGemmElements;
  const bool by_gemm = a.dtype == x.dtype && large && r.rows > 0 && x.rows > 0;
  if (by_gemm) {
    CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
    CROUT_RETURN_IF_ERROR(context_.core().Observe(NegativeProduct(a, op, x, r)));
  }
  return context_.Enqueue("Residual", [&](cudaStream_t stream) {
    const cudaError_t code = by_gemm ? cudaSuccess : LaunchResidual(a, op, x, b, r, stream);
    if (code != cudaSuccess) return code;
    return LaunchBackwardError(norm_op_a, x, b, r, by_gemm, context_.scratch(),
                               &context_.report().residual, stream);
  });
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
  return context_.Enqueue("WideRangeResidual", [&](cudaStream_t stream) {
    return LaunchWideRangeResidual(a, op, x, b, r, context_.scratch(), &context_.report().residual,
                                   stream);
  });
}

absl::Status CudaMatrixOps::ComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w) {
  return context_.Enqueue("ComponentwiseError", [&](cudaStream_t stream) {
    return LaunchComponentwiseError(r, w, context_.scratch(), &context_.report().residual, stream);
  });
}

absl::Status CudaMatrixOps::AbsProduct(const AnyMatrix& a, Op op, const AnyMatrix& x,
                                       const AnyMatrix& b, const MatrixView<double>& w) {
  return context_.Enqueue(
      "AbsProduct", [&](cudaStream_t stream) { return LaunchAbsProduct(a, op, x, b, w, stream); });
}

absl::Status CudaMatrixOps::Add(const AnyMatrix& d, const AnyMatrix& x) {
  return context_.Enqueue("Add", [&](cudaStream_t stream) { return LaunchAdd(d, x, stream); });
}

absl::Status CudaMatrixOps::SetEntries(const EntryList& entries, const AnyMatrix& a) {
  return context_.Enqueue("SetEntries", [&](cudaStream_t stream) {
    return LaunchSetEntries(entries, a, context_.scratch(), &context_.report().entries, stream);
  });
}

absl::Status CudaMatrixOps::SumValues(const ValueMap& map, DType dtype, const std::byte* values,
                                      std::byte* out) {
  return context_.Enqueue("SumValues", [&](cudaStream_t stream) {
    return LaunchSumValues(map, dtype, values, out, context_.scratch(), &context_.report().values,
                           stream);
  });
}

absl::Status CudaMatrixOps::Multiply(double alpha, Op op, const AnyMatrix& a, const AnyMatrix& b,
                                     double beta, const AnyMatrix& c) {
  if (c.rows == 0 || c.cols == 0 || (b.rows == 0 && beta == 1)) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(DispatchDevice(c.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T factor = ConvertTo<T>(alpha);
    const T addend = ConvertTo<T>(beta);
    return CublasStatus(Gemm<T>(context_.cublas(), op, &factor, a.As<const T>(), b.As<const T>(),
                                &addend, c.As<T>()),
                        "cublasXgemm");
  }));
}

absl::Status CudaMatrixOps::CopyOnDevice(const void* from, void* to, size_t bytes) {
  return Copy(from, to, bytes, cudaMemcpyDeviceToDevice);
}

absl::Status CudaMatrixOps::CopyToDevice(const void* host, void* device, size_t bytes) {
  return Copy(host, device, bytes, cudaMemcpyHostToDevice);
}

absl::Status CudaMatrixOps::CopyToHost(const void* device, void* host, size_t bytes) {
  return Copy(device, host, bytes, cudaMemcpyDefault);
}

absl::Status CudaMatrixOps::Copy(const void* from, void* to, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return absl::OkStatus();
  return context_.Enqueue("cudaMemcpyAsync", [&](cudaStream_t stream) {
    return cudaMemcpyAsync(to, from, bytes, kind, stream);
  });
}

}  // namespace crout::cuda
