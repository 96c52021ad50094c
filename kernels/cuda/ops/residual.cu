// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/matrix_kernels.h"
#include "kernels/cuda/ops/reduction.cuh"
#include "kernels/cuda/ops/sparse_rows.cuh"
#include "kernels/numerics/componentwise.h"

namespace crout::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kLanes = kBlockThreads / kTile;  // columns of A that a block reads at a time
constexpr int kGroup = 4;                      // columns of x per pass over A
constexpr int kBatch = 8;                      // elements per thread that are loaded at once
constexpr int64_t kMaxGridY = 65535;

// ResidualTerms: the residual of a system with vectors of type V. AbsoluteTerms: its componentwise
// scale.
template <class V>
struct ResidualTerms {
  using Sum = V;
  static __device__ V Add(V sum, V a, V x) { return PlusProduct(sum, a, x); }
  static __device__ V Combine(V b, V sum) { return b - sum; }
};
template <class V>
struct AbsoluteTerms {
  using Sum = double;
  static __device__ double Add(double sum, V a, V x) { return sum + Abs1(a) * Abs1(x); }
  static __device__ double Combine(V b, double sum) { return Abs1(b) + sum; }
};

// op(A) = A: a block handles 32 rows and iterates over the columns of A.
template <class Terms, class T, class V>
__device__ void Product(const MatrixView<const T>& a, const MatrixView<V>& x,
                        const MatrixView<V>& b, const MatrixView<typename Terms::Sum>& w,
                        int64_t c0) {
  using Sum = typename Terms::Sum;
  const int lane = threadIdx.x / kTile;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x % kTile;
  const int group = static_cast<int>(min(static_cast<int64_t>(kGroup), x.cols - c0));
  Sum sums[kGroup] = {};
  if (i < a.rows) {
#pragma unroll 4
    for (int64_t k = lane; k < a.cols; k += kLanes) {
      const V value = ToFloat64(a(i, k));
#pragma unroll
      for (int c = 0; c < kGroup; ++c) {
        if (c < group) sums[c] = Terms::Add(sums[c], value, x(k, c0 + c));
      }
    }
  }
  __shared__ Sum partial[kLanes][kTile];
#pragma unroll
  for (int c = 0; c < kGroup; ++c) {
    if (c >= group) break;
    __syncthreads();
    partial[lane][threadIdx.x % kTile] = sums[c];
    __syncthreads();
    if (lane != 0 || i >= a.rows) continue;
    Sum sum = sums[c];
    for (int k = 1; k < kLanes; ++k) sum += partial[k][threadIdx.x];
    w(i, c0 + c) = Terms::Combine(b(i, c0 + c), sum);
  }
}

// op(A) = A^T or A^H: a block handles one column of A.
template <class Terms, class T, class V>
__device__ void TransposedProduct(const MatrixView<const T>& a, bool conjugate,
                                  const MatrixView<V>& x, const MatrixView<V>& b,
                                  const MatrixView<typename Terms::Sum>& w, int64_t c0) {
  using Sum = typename Terms::Sum;
  const int64_t j = blockIdx.x;
  const int group = static_cast<int>(min(static_cast<int64_t>(kGroup), x.cols - c0));
  Sum sums[kGroup] = {};
#pragma unroll 4
  for (int64_t k = threadIdx.x; k < a.rows; k += kBlockThreads) {
    const V stored = ToFloat64(a(k, j));
    const V value = conjugate ? Conjugate(stored) : stored;
#pragma unroll
    for (int c = 0; c < kGroup; ++c) {
      if (c < group) sums[c] = Terms::Add(sums[c], value, x(k, c0 + c));
    }
  }
#pragma unroll
  for (int c = 0; c < kGroup; ++c) {
    if (c >= group) break;
    const Sum sum = BlockReduce(sums[c], cuda::Sum());
    if (threadIdx.x == 0) w(j, c0 + c) = Terms::Combine(b(j, c0 + c), sum);
  }
}

template <class Terms, class T, class V>
__global__ void __launch_bounds__(kBlockThreads)
    ProductKernel(MatrixView<const T> a, Op op, MatrixView<V> x, MatrixView<V> b,
                  MatrixView<typename Terms::Sum> w) {
  for (int64_t c0 = static_cast<int64_t>(blockIdx.y) * kGroup; c0 < x.cols;
       c0 += static_cast<int64_t>(gridDim.y) * kGroup) {
    if (op == Op::kNone) {
      Product<Terms>(a, x, b, w, c0);
    } else {
      TransposedProduct<Terms>(a, op == Op::kConjugateTranspose, x, b, w, c0);
    }
  }
}

// Sparse op(A): one warp per row.
template <class Terms, class T, class V>
__global__ void __launch_bounds__(kBlockThreads)
    SparseProductKernel(SparseRows<T> rows, MatrixView<V> x, MatrixView<V> b,
                        MatrixView<typename Terms::Sum> w) {
  using Sum = typename Terms::Sum;
  const int64_t i = RowOfWarp();
  if (i >= rows.n) return;
  for (int64_t c0 = static_cast<int64_t>(blockIdx.y) * kGroup; c0 < x.cols;
       c0 += static_cast<int64_t>(gridDim.y) * kGroup) {
    const int group = static_cast<int>(min(static_cast<int64_t>(kGroup), x.cols - c0));
    Sum sums[kGroup] = {};
    rows.ForEach(i, LaneOfWarp(), kWarp, [&](int64_t k, T v) {
      const V value = ToFloat64(v);
#pragma unroll
      for (int c = 0; c < kGroup; ++c) {
        if (c < group) sums[c] = Terms::Add(sums[c], value, x(k, c0 + c));
      }
    });
#pragma unroll
    for (int c = 0; c < kGroup; ++c) {
      if (c >= group) break;
      const Sum sum = WarpReduce(sums[c], cuda::Sum());
      if (LaneOfWarp() == 0) w(i, c0 + c) = Terms::Combine(b(i, c0 + c), sum);
    }
  }
}

__device__ double ColumnError(double norm_op_a, double residual, double solution, double rhs) {
  if (!isfinite(norm_op_a) || !isfinite(solution) || !isfinite(rhs) || !isfinite(residual)) {
    return nan("");
  }
  if (residual == 0) return 0;
  const double scale = norm_op_a * solution + rhs;
  // If only the scale overflows, the quotient need not be zero.
  return isfinite(scale) ? residual / scale
                         : 1 / (norm_op_a / residual * solution + rhs / residual);
}

// One block per column.
template <class V>
__global__ void __launch_bounds__(kBlockThreads)
    BackwardErrorKernel(double norm_op_a, MatrixView<V> x, MatrixView<V> b, MatrixView<V> r,
                        bool add_rhs, ReductionScratch* scratch, ResidualStats* report) {
  const int64_t c = blockIdx.x;
  if (c < b.cols) {
    double solution = 0;
    double rhs = 0;
    double residual = 0;
#pragma unroll kBatch
    for (int64_t i = threadIdx.x; i < x.rows; i += kBlockThreads) {
      solution = MaxKeepingNan(solution, Modulus(x(i, c)));
    }
    for (int64_t first = threadIdx.x; first < b.rows; first += kBatch * kBlockThreads) {
      // All loads precede the first store, because the compiler cannot assume that r does not alias
      // b.
      V right[kBatch];
      V left[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int64_t i = first + k * kBlockThreads;
        right[k] = i < b.rows ? b(i, c) : V{};
        left[k] = i < b.rows ? r(i, c) : V{};
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int64_t i = first + k * kBlockThreads;
        if (add_rhs) left[k] += right[k];
        if (add_rhs && i < b.rows) r(i, c) = left[k];
        rhs = MaxKeepingNan(rhs, Modulus(right[k]));
        residual = MaxKeepingNan(residual, Modulus(left[k]));
      }
    }
    solution = BlockReduce(solution, Max());
    rhs = BlockReduce(rhs, Max());
    residual = BlockReduce(residual, Max());
    if (threadIdx.x == 0) {
      const double error = ColumnError(norm_op_a, residual, solution, rhs);
      atomicMax(&scratch->greatest[0], AbsBits(error));
    }
  }
  if (!IsLastBlock(scratch) || threadIdx.x != 0) return;
  report->backward_error = FromBits(Load(scratch->greatest[0]));
  Reset(scratch);
}

// One block per column.
template <class V>
__global__ void __launch_bounds__(kBlockThreads)
    ComponentwiseErrorKernel(MatrixView<V> r, MatrixView<double> w, ReductionScratch* scratch,
                             ResidualStats* report) {
  const int64_t c = blockIdx.x;
  if (c < r.cols) {
    const ComponentwiseGuard guard(r.rows);
    double worst = 0;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < r.rows; i += kBlockThreads) {
      worst = MaxKeepingNan(worst, guard.Error(Abs1(r(i, c)), w(i, c)));
    }
    worst = BlockReduce(worst, Max());
    if (threadIdx.x == 0) atomicMax(&scratch->greatest[0], AbsBits(worst));
  }
  if (!IsLastBlock(scratch) || threadIdx.x != 0) return;
  report->componentwise_error = FromBits(Load(scratch->greatest[0]));
  Reset(scratch);
}

// The grid's height: one block per group of columns; a block handles several groups if there are
// too many.
unsigned GroupsOf(const AnyMatrix& x) {
  return static_cast<unsigned>(std::min((x.cols + kGroup - 1) / kGroup, kMaxGridY));
}

template <template <class> class Terms>
cudaError_t Launch(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                   const AnyMatrix& w, cudaStream_t stream) {
  if (w.rows == 0 || w.cols == 0) return cudaSuccess;
  const int64_t blocks = op == Op::kNone ? (a.rows + kTile - 1) / kTile : a.cols;
  const dim3 grid(static_cast<unsigned>(blocks), GroupsOf(x));
  DispatchDevice(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using V = WideType<T>;
    const MatrixView<const T> view{reinterpret_cast<const T*>(a.data), a.rows, a.cols, a.ld};
    ProductKernel<Terms<V>><<<grid, kBlockThreads, 0, stream>>>(view, op, x.As<V>(), b.As<V>(),
                                                                w.As<typename Terms<V>::Sum>());
  });
  return cudaGetLastError();
}

template <template <class> class Terms>
cudaError_t Launch(const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                   const AnyMatrix& w, cudaStream_t stream) {
  if (a.n == 0 || w.cols == 0) return cudaSuccess;
  const dim3 grid(BlocksOfWarps(a.n), GroupsOf(x));
  DispatchDevice(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using V = WideType<T>;
    SparseProductKernel<Terms<V>><<<grid, kBlockThreads, 0, stream>>>(
        SparseRows<T>::ForOp(a, op), x.As<V>(), b.As<V>(), w.As<typename Terms<V>::Sum>());
  });
  return cudaGetLastError();
}

}  // namespace

cudaError_t LaunchResidual(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                           const AnyMatrix& r, cudaStream_t stream) {
  return Launch<ResidualTerms>(a, op, x, b, r, stream);
}

cudaError_t LaunchAbsProduct(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                             const MatrixView<double>& w, cudaStream_t stream) {
  return Launch<AbsoluteTerms>(a, op, x, b, w, stream);
}

cudaError_t LaunchResidual(const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                           const AnyMatrix& r, cudaStream_t stream) {
  return Launch<ResidualTerms>(a, op, x, b, r, stream);
}

cudaError_t LaunchAbsProduct(const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                             const MatrixView<double>& w, cudaStream_t stream) {
  return Launch<AbsoluteTerms>(a, op, x, b, w, stream);
}

cudaError_t LaunchBackwardError(double norm_op_a, const AnyMatrix& x, const AnyMatrix& b,
                                const AnyMatrix& r, bool add_rhs, ReductionScratch* scratch,
                                ResidualStats* report, cudaStream_t stream) {
  // At least one block, which publishes the report even without columns.
  const auto blocks = static_cast<unsigned>(std::max<int64_t>(1, b.cols));
  DispatchWide(b.dtype, [&](auto tag) {
    using V = typename decltype(tag)::type;
    BackwardErrorKernel<<<blocks, kBlockThreads, 0, stream>>>(norm_op_a, x.As<V>(), b.As<V>(),
                                                              r.As<V>(), add_rhs, scratch, report);
  });
  return cudaGetLastError();
}

cudaError_t LaunchComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w,
                                     ReductionScratch* scratch, ResidualStats* report,
                                     cudaStream_t stream) {
  // At least one block, which publishes the report even without columns.
  const auto blocks = static_cast<unsigned>(std::max<int64_t>(1, r.cols));
  DispatchWide(r.dtype, [&](auto tag) {
    using V = typename decltype(tag)::type;
    ComponentwiseErrorKernel<<<blocks, kBlockThreads, 0, stream>>>(r.As<V>(), w, scratch, report);
  });
  return cudaGetLastError();
}

}  // namespace crout::cuda
