// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/solve_kernels.h"

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace {

constexpr int kWarps = kBlockThreads / kWarp;

// A thread's share of the norms of one column.
struct Norms {
  double residual = 0;
  double matrix = 0;  // |op(A)|_inf; set for the first column only
  double x = 0;
  double b = 0;
};

// Each thread handles rows of A, so adjacent threads read adjacent elements.
template <class T>
__device__ void SubtractRows(const MatrixView<const T>& a, const T* x, const T* b, bool first,
                             Norms& norms) {
  using Wide = WideType<T>;
  for (int64_t i = threadIdx.x; i < a.rows; i += kBlockThreads) {
    Wide residual = ToFloat64(b[i]);
    double sum = 0;
    for (int64_t k = 0; k < a.cols; ++k) {
      const T entry = a(i, k);
      residual = MinusProduct(residual, ToFloat64(entry), ToFloat64(x[k]));
      if (first) sum += Modulus(entry);
    }
    norms.residual = MaxKeepingNan(norms.residual, Modulus<Wide>(residual));
    norms.matrix = MaxKeepingNan(norms.matrix, sum);
  }
}

// Each warp handles columns of A.
template <class T>
__device__ void SubtractColumns(const MatrixView<const T>& a, bool conjugate, const T* x,
                                const T* b, bool first, Norms& norms) {
  using Wide = WideType<T>;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t j = threadIdx.x / kWarp; j < a.cols; j += kWarps) {
    Wide product = 0;
    double sum = 0;
    for (int64_t i = lane; i < a.rows; i += kWarp) {
      const T entry = a(i, j);
      const Wide wide = ToFloat64(entry);
      product = PlusProduct(product, conjugate ? Conjugate(wide) : wide, ToFloat64(x[i]));
      if (first) sum += Modulus(entry);
    }
    product = WarpReduce(product, Sum());
    sum = WarpReduce(sum, Sum());
    if (lane != 0) continue;
    norms.residual = MaxKeepingNan(norms.residual, Modulus<Wide>(ToFloat64(b[j]) - product));
    norms.matrix = MaxKeepingNan(norms.matrix, sum);
  }
}

template <class T>
__device__ double NormInf(const T* v, int64_t count) {
  double norm = 0;
  for (int64_t i = threadIdx.x; i < count; i += kBlockThreads) {
    norm = MaxKeepingNan(norm, Modulus(v[i]));
  }
  return norm;
}

__device__ double Quotient(double residual, double scale) {
  if (residual == 0 && scale == 0) return 0;
  // An infinite scale would give 0; a NaN marks the error as unknown.
  const double error = residual / scale;
  return isfinite(scale) && isfinite(error) ? error : nan("");
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    BackwardErrorKernel(Op op, BatchSystems<T> systems, double* errors) {
  const BatchMember place = systems.a_members[blockIdx.x];
  const BatchMember rhs = systems.rhs_members[blockIdx.x];
  double worst = 0;        // valid in thread 0
  double norm_matrix = 0;  // valid in thread 0
  if (rhs.rows > 0) {
    const MatrixView<const T> a = {systems.a + place.offset, place.rows, place.cols, place.ld};
    for (int64_t j = 0; j < rhs.cols; ++j) {
      const T* const x = systems.x + rhs.offset + j * rhs.ld;
      const T* const b = systems.b + rhs.offset + j * rhs.ld;
      Norms norms;
      if (op == Op::kNone) {
        SubtractRows(a, x, b, j == 0, norms);
      } else {
        SubtractColumns(a, op == Op::kConjugateTranspose, x, b, j == 0, norms);
      }
      const double residual = BlockReduce(norms.residual, Max());
      if (j == 0) norm_matrix = BlockReduce(norms.matrix, Max());
      const double norm_x = BlockReduce(NormInf(x, rhs.rows), Max());
      const double norm_b = BlockReduce(NormInf(b, rhs.rows), Max());
      worst = MaxKeepingNan(worst, Quotient(residual, norm_matrix * norm_x + norm_b));
    }
  }
  if (threadIdx.x == 0) errors[blockIdx.x] = worst;
}

}  // namespace

template <class T>
cudaError_t LaunchBackwardErrors(Op op, const BatchSystems<T>& systems, int64_t members,
                                 double* errors, cudaStream_t stream) {
  if (members == 0) return cudaSuccess;
  BackwardErrorKernel<T>
      <<<static_cast<unsigned>(members), kBlockThreads, 0, stream>>>(op, systems, errors);
  return cudaGetLastError();
}

template cudaError_t LaunchBackwardErrors(Op, const BatchSystems<float>&, int64_t, double*,
                                          cudaStream_t);
template cudaError_t LaunchBackwardErrors(Op, const BatchSystems<double>&, int64_t, double*,
                                          cudaStream_t);
template cudaError_t LaunchBackwardErrors(Op, const BatchSystems<Complex<float>>&, int64_t, double*,
                                          cudaStream_t);
template cudaError_t LaunchBackwardErrors(Op, const BatchSystems<Complex<double>>&, int64_t,
                                          double*, cudaStream_t);

}  // namespace crout::cuda
