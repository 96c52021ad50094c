// SPDX-License-Identifier: Apache-2.0

#include <limits>

#include "kernels/cuda/blocked/tiles.h"
#include "kernels/cuda/device/scalar.cuh"

namespace crout::cuda {
namespace {

constexpr int kTile = static_cast<int>(kMaxTile);
constexpr int kGroups = 8;                 // threads per row
constexpr int kColumns = kTile / kGroups;  // columns per thread
constexpr int kThreads = 256;

// Thread (i, group) keeps every kGroups-th element of row i in registers. For pivot k, the pivot
// row and column pass through shared memory.
template <class T>
__global__ void __launch_bounds__(kTile* kGroups)
    LuTileKernel(MatrixView<T> a, int64_t first, HostSignals host, LuControl<T>* control) {
  __shared__ T pivot_row[2][kTile];  // double-buffered: one barrier per pivot
  __shared__ T pivot_column[2][kTile];
  if (control->halt != 0) return;
  const int i = threadIdx.x;
  const int group = threadIdx.y;
  const int order = static_cast<int>(a.rows);
  const bool keeper = i == 0 && group == 0;
  if (keeper) *host.columns = first;
  // The load starts here; its value is used at the end.
  const uint32_t stopped = keeper ? *host.stop : 0;
  T values[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const int j = c * kGroups + group;
    values[c] = i < order && j < order ? a(i, j) : (i == j ? T{1} : T{0});
  }
  int refused = 0;  // 1-based index of a refused pivot, or 0; the same in all threads
#pragma unroll
  for (int part = 0; part < kColumns; ++part) {
#pragma unroll 1
    for (int step = 0; step < kGroups; ++step) {
      const int k = part * kGroups + step;
      T* const row = pivot_row[step % 2];
      T* const column = pivot_column[step % 2];
      if (i == k) {
#pragma unroll
        for (int c = part; c < kColumns; ++c) row[c * kGroups + group] = values[c];
      }
      if (group == step) column[i] = values[part];
      __syncthreads();
      const T pivot = row[k];
      if (refused == 0 && !(Abs1(pivot) >= std::numeric_limits<RealPart<T>>::min()))
        refused = k + 1;
      if (i <= k) continue;
      const T l = column[i] / pivot;
      if (group == step) values[part] = l;
#pragma unroll
      for (int c = part; c < kColumns; ++c) {
        if (c > part || group > step) {
          values[c] = MinusProduct(values[c], l, row[c * kGroups + group]);
        }
      }
    }
  }
  if (refused == 0) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int j = c * kGroups + group;
      if (i < order && j < order) a(i, j) = values[c];
    }
  }
  if (!keeper) return;
  if (refused != 0) control->info = static_cast<int>(first) + refused;
  if (refused != 0 || stopped != 0) Halt(control);
}

__global__ void __launch_bounds__(kThreads) IdentityPivotsKernel(int64_t* ipiv, int64_t n) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (k < n) ipiv[k] = k + 1;
}

}  // namespace

template <class T>
cudaError_t LaunchLuTile(const MatrixView<T>& tile, int64_t first, const HostSignals& host,
                         LuControl<T>* control, cudaStream_t stream) {
  LuTileKernel<<<1, dim3(kTile, kGroups), 0, stream>>>(tile, first, host, control);
  return cudaGetLastError();
}

cudaError_t LaunchIdentityPivots(int64_t* ipiv, int64_t n, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((n + kThreads - 1) / kThreads);
  IdentityPivotsKernel<<<blocks, kThreads, 0, stream>>>(ipiv, n);
  return cudaGetLastError();
}

template cudaError_t LaunchLuTile(const MatrixView<float>&, int64_t, const HostSignals&,
                                  LuControl<float>*, cudaStream_t);
template cudaError_t LaunchLuTile(const MatrixView<double>&, int64_t, const HostSignals&,
                                  LuControl<double>*, cudaStream_t);

template cudaError_t LaunchLuTile(const MatrixView<Complex<float>>&, int64_t, const HostSignals&,
                                  LuControl<Complex<float>>*, cudaStream_t);
template cudaError_t LaunchLuTile(const MatrixView<Complex<double>>&, int64_t, const HostSignals&,
                                  LuControl<Complex<double>>*, cudaStream_t);

}  // namespace crout::cuda
