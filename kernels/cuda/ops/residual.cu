#include <algorithm>

#include "kernels/cuda/ops/reduction.cuh"
#include "kernels/cuda/ops/residual.h"
#include "kernels/numerics/componentwise.h"

namespace crout::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kLanes = kBlockThreads / kTile;  // columns of A that a block reads at once
constexpr int kGroup = 4;                      // columns of x for each pass over A
constexpr int kBatch = 8;                      // elements that a thread has on their way at once
constexpr int64_t kMaxGridY = 65535;

__device__ double Term(ProductKind kind, double a, double x) {
  return kind == ProductKind::kResidual ? a * x : fabs(a) * fabs(x);
}

__device__ void Store(ProductKind kind, const MatrixView<double>& b, const MatrixView<double>& w,
                      int64_t i, int64_t c, double product) {
  w(i, c) = kind == ProductKind::kResidual ? b(i, c) - product : fabs(b(i, c)) + product;
}

// op(A) = A: a block owns 32 rows and walks along the columns of A.
template <ProductKind kKind, class T>
__device__ void Product(const MatrixView<const T>& a, const MatrixView<double>& x,
                        const MatrixView<double>& b, const MatrixView<double>& w, int64_t c0) {
  const int lane = threadIdx.x / kTile;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x % kTile;
  const int group = static_cast<int>(min(static_cast<int64_t>(kGroup), x.cols - c0));
  double sums[kGroup] = {};
  if (i < a.rows) {
#pragma unroll 4
    for (int64_t k = lane; k < a.cols; k += kLanes) {
      const double value = a(i, k);
#pragma unroll
      for (int c = 0; c < kGroup; ++c) {
        if (c < group) sums[c] += Term(kKind, value, x(k, c0 + c));
      }
    }
  }
  __shared__ double partial[kLanes][kTile];
#pragma unroll
  for (int c = 0; c < kGroup; ++c) {
    if (c >= group) break;
    __syncthreads();
    partial[lane][threadIdx.x % kTile] = sums[c];
    __syncthreads();
    if (lane != 0 || i >= a.rows) continue;
    double sum = sums[c];
    for (int k = 1; k < kLanes; ++k) sum += partial[k][threadIdx.x];
    Store(kKind, b, w, i, c0 + c, sum);
  }
}

// op(A) = A^T: a block owns one column of A.
template <ProductKind kKind, class T>
__device__ void TransposedProduct(const MatrixView<const T>& a, const MatrixView<double>& x,
                                  const MatrixView<double>& b, const MatrixView<double>& w,
                                  int64_t c0) {
  const int64_t j = blockIdx.x;
  const int group = static_cast<int>(min(static_cast<int64_t>(kGroup), x.cols - c0));
  double sums[kGroup] = {};
#pragma unroll 4
  for (int64_t k = threadIdx.x; k < a.rows; k += kBlockThreads) {
    const double value = a(k, j);
#pragma unroll
    for (int c = 0; c < kGroup; ++c) {
      if (c < group) sums[c] += Term(kKind, value, x(k, c0 + c));
    }
  }
#pragma unroll
  for (int c = 0; c < kGroup; ++c) {
    if (c >= group) break;
    const double sum = BlockReduce(sums[c], Sum());
    if (threadIdx.x == 0) Store(kKind, b, w, j, c0 + c, sum);
  }
}

template <ProductKind kKind, class T>
__global__ void __launch_bounds__(kBlockThreads)
    ProductKernel(MatrixView<const T> a, bool transpose, MatrixView<double> x, MatrixView<double> b,
                  MatrixView<double> w) {
  for (int64_t c0 = static_cast<int64_t>(blockIdx.y) * kGroup; c0 < x.cols;
       c0 += static_cast<int64_t>(gridDim.y) * kGroup) {
    if (transpose) {
      TransposedProduct<kKind>(a, x, b, w, c0);
    } else {
      Product<kKind>(a, x, b, w, c0);
    }
  }
}

__device__ double ColumnError(double norm_op_a, double residual, double solution, double rhs) {
  if (!isfinite(norm_op_a) || !isfinite(solution) || !isfinite(rhs) || !isfinite(residual)) {
    return nan("");
  }
  if (residual == 0) return 0;
  const double scale = norm_op_a * solution + rhs;
  // Where only the scale overflows the quotient need not be zero.
  return isfinite(scale) ? residual / scale
                         : 1 / (norm_op_a / residual * solution + rhs / residual);
}

// One block for each column.
__global__ void __launch_bounds__(kBlockThreads)
    BackwardErrorKernel(double norm_op_a, MatrixView<double> x, MatrixView<double> b,
                        MatrixView<double> r, bool add_rhs, ReductionScratch* scratch,
                        ResidualStats* report) {
  const int64_t c = blockIdx.x;
  if (c < b.cols) {
    double solution = 0;
    double rhs = 0;
    double residual = 0;
#pragma unroll kBatch
    for (int64_t i = threadIdx.x; i < x.rows; i += kBlockThreads) {
      solution = MaxKeepingNan(solution, fabs(x(i, c)));
    }
    for (int64_t first = threadIdx.x; first < b.rows; first += kBatch * kBlockThreads) {
      // All loads before the first store: the compiler cannot know that r is apart from b.
      double right[kBatch];
      double left[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int64_t i = first + k * kBlockThreads;
        right[k] = i < b.rows ? b(i, c) : 0;
        left[k] = i < b.rows ? r(i, c) : 0;
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int64_t i = first + k * kBlockThreads;
        if (add_rhs) left[k] += right[k];
        if (add_rhs && i < b.rows) r(i, c) = left[k];
        rhs = MaxKeepingNan(rhs, fabs(right[k]));
        residual = MaxKeepingNan(residual, fabs(left[k]));
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

// One block for each column.
__global__ void __launch_bounds__(kBlockThreads)
    ComponentwiseErrorKernel(MatrixView<double> r, MatrixView<double> w, ReductionScratch* scratch,
                             ResidualStats* report) {
  const int64_t c = blockIdx.x;
  if (c < r.cols) {
    const ComponentwiseGuard guard(r.rows);
    double worst = 0;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < r.rows; i += kBlockThreads) {
      worst = MaxKeepingNan(worst, guard.Error(fabs(r(i, c)), w(i, c)));
    }
    worst = BlockReduce(worst, Max());
    if (threadIdx.x == 0) atomicMax(&scratch->greatest[0], AbsBits(worst));
  }
  if (!IsLastBlock(scratch) || threadIdx.x != 0) return;
  report->componentwise_error = FromBits(Load(scratch->greatest[0]));
  Reset(scratch);
}

template <ProductKind kKind>
void Launch(const AnyMatrix& a, Op op, const MatrixView<double>& x, const MatrixView<double>& b,
            const MatrixView<double>& w, cudaStream_t stream) {
  const bool transpose = op != Op::kNone;
  const int64_t blocks = transpose ? a.cols : (a.rows + kTile - 1) / kTile;
  const int64_t groups = (x.cols + kGroup - 1) / kGroup;
  const dim3 grid(static_cast<unsigned>(blocks),
                  static_cast<unsigned>(std::min(groups, kMaxGridY)));
  DispatchReal(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<const T> view{reinterpret_cast<const T*>(a.data), a.rows, a.cols, a.ld};
    ProductKernel<kKind><<<grid, kBlockThreads, 0, stream>>>(view, transpose, x, b, w);
  });
}

}  // namespace

cudaError_t LaunchProduct(ProductKind kind, const AnyMatrix& a, Op op, const MatrixView<double>& x,
                          const MatrixView<double>& b, const MatrixView<double>& w,
                          cudaStream_t stream) {
  if (w.rows == 0 || w.cols == 0) return cudaSuccess;
  if (kind == ProductKind::kResidual) {
    Launch<ProductKind::kResidual>(a, op, x, b, w, stream);
  } else {
    Launch<ProductKind::kAbsolute>(a, op, x, b, w, stream);
  }
  return cudaGetLastError();
}

cudaError_t LaunchBackwardError(double norm_op_a, const MatrixView<double>& x,
                                const MatrixView<double>& b, const MatrixView<double>& r,
                                bool add_rhs, ReductionScratch* scratch, ResidualStats* report,
                                cudaStream_t stream) {
  // One block even without columns: it publishes.
  const auto blocks = static_cast<unsigned>(std::max<int64_t>(1, b.cols));
  BackwardErrorKernel<<<blocks, kBlockThreads, 0, stream>>>(norm_op_a, x, b, r, add_rhs, scratch,
                                                            report);
  return cudaGetLastError();
}

cudaError_t LaunchComponentwiseError(const MatrixView<double>& r, const MatrixView<double>& w,
                                     ReductionScratch* scratch, ResidualStats* report,
                                     cudaStream_t stream) {
  // One block even without columns: it publishes.
  const auto blocks = static_cast<unsigned>(std::max<int64_t>(1, r.cols));
  ComponentwiseErrorKernel<<<blocks, kBlockThreads, 0, stream>>>(r, w, scratch, report);
  return cudaGetLastError();
}

}  // namespace crout::cuda
