// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/ops/permute_rows.h"

namespace crout::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTraceThreads = 128;
constexpr int64_t kMaxGridY = 65535;

// Each thread traces one row back through the interchanges, from last to first: all rows take n
// steps in parallel. Applying the interchanges in order would be a chain of n dependent swaps.
__global__ void __launch_bounds__(kTraceThreads)
    TraceInterchangesKernel(const int64_t* ipiv, int n, int rows, int block, int64_t* p) {
  __shared__ int chunk[kTraceThreads];
  const int i = static_cast<int>(blockIdx.x) * kTraceThreads + static_cast<int>(threadIdx.x);
  int row = i;
  for (int end = n; end > 0;) {
    // A chunk lies within one block of interchanges.
    const int b = (end - 1) / block;
    const int begin = max(b * block, end - kTraceThreads);
    __syncthreads();
    if (begin + static_cast<int>(threadIdx.x) < end) {
      chunk[threadIdx.x] = static_cast<int>(ipiv[begin + threadIdx.x] - 1);
    }
    __syncthreads();
#pragma unroll 8
    for (int k = end - 1; k >= begin; --k) {
      const int other = chunk[k - begin];
      row = row == k ? other : (row == other ? k : row);
    }
    if (begin == b * block && i < rows) p[static_cast<int64_t>(b) * rows + i] = row;
    end = begin;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    PermuteRowsKernel(MatrixView<const T> in, const int64_t* p, bool inverse, MatrixView<T> out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= in.rows) return;
  const int64_t from = inverse ? i : p[i];
  const int64_t to = inverse ? p[i] : i;
  for (int64_t j = blockIdx.y; j < in.cols; j += gridDim.y) out(to, j) = in(from, j);
}

}  // namespace

cudaError_t LaunchTraceInterchanges(const int64_t* ipiv, int64_t n, int64_t rows, int64_t block,
                                    int64_t* p, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((rows + kTraceThreads - 1) / kTraceThreads);
  TraceInterchangesKernel<<<blocks, kTraceThreads, 0, stream>>>(
      ipiv, static_cast<int>(n), static_cast<int>(rows), static_cast<int>(block), p);
  return cudaGetLastError();
}

cudaError_t LaunchTracePermutation(const int64_t* ipiv, int64_t n, int64_t* p,
                                   cudaStream_t stream) {
  return LaunchTraceInterchanges(ipiv, n, n, n, p, stream);
}

cudaError_t LaunchPermuteRows(const AnyMatrix& in, const int64_t* p, bool inverse,
                              const AnyMatrix& out, cudaStream_t stream) {
  if (in.rows == 0 || in.cols == 0) return cudaSuccess;
  const dim3 grid(static_cast<unsigned>((in.rows + kThreads - 1) / kThreads),
                  static_cast<unsigned>(std::min(in.cols, kMaxGridY)));
  DispatchDevice(in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<const T> view{reinterpret_cast<const T*>(in.data), in.rows, in.cols, in.ld};
    PermuteRowsKernel<<<grid, kThreads, 0, stream>>>(view, p, inverse, out.As<T>());
  });
  return cudaGetLastError();
}

}  // namespace crout::cuda
