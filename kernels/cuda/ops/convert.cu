#include <algorithm>

#include "kernels/cuda/ops/convert.h"

namespace crout::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;  // elements of one column for each thread
constexpr int kTile = 32;
constexpr int kTileRows = 8;
constexpr int64_t kMaxGridY = 65535;

// Blocks over the rows in x, and over the columns in y, where the kernel strides on if there are
// more than the grid can be high.
dim3 ColumnGrid(int64_t rows, int64_t cols) {
  constexpr int64_t kRows = kThreads * kPerThread;
  return dim3(static_cast<unsigned>((rows + kRows - 1) / kRows),
              static_cast<unsigned>(std::min(cols, kMaxGridY)));
}

// Calls f(i, j) for the elements of this thread.
template <class F>
__device__ void ForEachElement(int64_t rows, int64_t cols, F f) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads * kPerThread + threadIdx.x;
  for (int64_t j = blockIdx.y; j < cols; j += gridDim.y) {
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int64_t i = first + k * kThreads;
      if (i < rows) f(i, j);
    }
  }
}

template <class In, class Out>
__global__ void __launch_bounds__(kThreads)
    CopyScaledKernel(MatrixView<const In> in, const double* row, const double* col,
                     MatrixView<Out> out) {
  ForEachElement(in.rows, in.cols, [&](int64_t i, int64_t j) {
    double value = in(i, j);
    if (row != nullptr) value *= row[i];
    if (col != nullptr) value *= col[j];
    out(i, j) = static_cast<Out>(value);
  });
}

__global__ void __launch_bounds__(kThreads) AddKernel(MatrixView<double> d, MatrixView<double> x) {
  ForEachElement(x.rows, x.cols, [&](int64_t i, int64_t j) { x(i, j) += d(i, j); });
}

// Through shared memory, so that both sides move whole cache lines.
template <class In, class Out>
__global__ void __launch_bounds__(kTile* kTileRows)
    TransposeKernel(MatrixView<const In> in, MatrixView<Out> out, int64_t tiles_down) {
  __shared__ Out tile[kTile][kTile + 1];
  const int64_t i0 = (blockIdx.x % tiles_down) * kTile;
  const int64_t j0 = (blockIdx.x / tiles_down) * kTile;
  for (int k = threadIdx.y; k < kTile; k += kTileRows) {
    const int64_t i = i0 + threadIdx.x;
    const int64_t j = j0 + k;
    if (i < in.rows && j < in.cols) tile[k][threadIdx.x] = static_cast<Out>(in(i, j));
  }
  __syncthreads();
  for (int k = threadIdx.y; k < kTile; k += kTileRows) {
    const int64_t i = i0 + k;
    const int64_t j = j0 + threadIdx.x;
    if (i < in.rows && j < in.cols) out(j, i) = tile[threadIdx.x][k];
  }
}

template <class T>
MatrixView<const T> ConstView(const AnyMatrix& m) {
  return {reinterpret_cast<const T*>(m.data), m.rows, m.cols, m.ld};
}

// Contiguous matrices are copied as one column: short columns would leave most threads idle.
AnyMatrix AsColumn(AnyMatrix m) {
  m.rows *= m.cols;
  m.cols = 1;
  m.ld = m.rows;
  return m;
}

}  // namespace

cudaError_t LaunchCopyScaled(const AnyMatrix& in, const double* row, const double* col,
                             const AnyMatrix& out, cudaStream_t stream) {
  if (in.rows == 0 || in.cols == 0) return cudaSuccess;
  const bool plain = row == nullptr && col == nullptr && in.ld == in.rows && out.ld == out.rows;
  const AnyMatrix from = plain ? AsColumn(in) : in;
  const AnyMatrix to = plain ? AsColumn(out) : out;
  DispatchReal(in.dtype, [&](auto in_tag) {
    using In = typename decltype(in_tag)::type;
    DispatchReal(out.dtype, [&](auto out_tag) {
      using Out = typename decltype(out_tag)::type;
      CopyScaledKernel<<<ColumnGrid(from.rows, from.cols), kThreads, 0, stream>>>(
          ConstView<In>(from), row, col, to.As<Out>());
    });
  });
  return cudaGetLastError();
}

cudaError_t LaunchTranspose(const AnyMatrix& in, const AnyMatrix& out, cudaStream_t stream) {
  if (in.rows == 0 || in.cols == 0) return cudaSuccess;
  const int64_t down = (in.rows + kTile - 1) / kTile;
  const auto blocks = static_cast<unsigned>(down * ((in.cols + kTile - 1) / kTile));
  DispatchReal(in.dtype, [&](auto in_tag) {
    using In = typename decltype(in_tag)::type;
    DispatchReal(out.dtype, [&](auto out_tag) {
      using Out = typename decltype(out_tag)::type;
      TransposeKernel<<<blocks, dim3(kTile, kTileRows), 0, stream>>>(ConstView<In>(in),
                                                                     out.As<Out>(), down);
    });
  });
  return cudaGetLastError();
}

cudaError_t LaunchAdd(const MatrixView<double>& d, const MatrixView<double>& x,
                      cudaStream_t stream) {
  if (x.rows == 0 || x.cols == 0) return cudaSuccess;
  AddKernel<<<ColumnGrid(x.rows, x.cols), kThreads, 0, stream>>>(d, x);
  return cudaGetLastError();
}

}  // namespace crout::cuda
