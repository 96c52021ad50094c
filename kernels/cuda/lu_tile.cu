#include <limits>

#include "kernels/cuda/lu_tile.h"
#include "kernels/cuda/solve_tile.h"

namespace crout {
namespace {

constexpr int kTile = static_cast<int>(kMaxTile);
constexpr int kRowGroups = 8;  // threads of a column
constexpr int kThreads = 256;

// Thread (i, group) works on row i, in every kRowGroups-th column.
template <class T>
__global__ void __launch_bounds__(kTile* kRowGroups)
    LuTileKernel(MatrixView<T> a, int64_t first, const volatile uint32_t* stop,
                 LuControl<T>* control) {
  __shared__ T tile[kTile][kTile + 1];  // [column][row]
  if (control->halt != 0) return;
  const int i = threadIdx.x;
  const int group = threadIdx.y;
  const int order = static_cast<int>(a.rows);
  for (int j = group; j < order; j += kRowGroups) {
    if (i < order) tile[j][i] = a(i, j);
  }
  __syncthreads();
  int refused = 0;  // the same in all threads
  for (int k = 0; k < order && refused == 0; ++k) {
    const T pivot = tile[k][k];
    if (!(fabs(pivot) >= std::numeric_limits<T>::min())) refused = k + 1;
    if (refused == 0 && group == 0 && i > k && i < order) tile[k][i] /= pivot;
    __syncthreads();
    if (refused == 0 && i > k && i < order) {
      const T l = tile[k][i];
      for (int j = k + 1 + group; j < order; j += kRowGroups) tile[j][i] -= l * tile[j][k];
    }
    __syncthreads();
  }
  if (refused == 0) {
    for (int j = group; j < order; j += kRowGroups) {
      if (i < order) a(i, j) = tile[j][i];
    }
  }
  if (i != 0 || group != 0) return;
  if (refused != 0) control->info = static_cast<int>(first) + refused;
  if (refused != 0 || *stop != 0) Halt(control);
}

__global__ void __launch_bounds__(kThreads) IdentityPivotsKernel(int64_t* ipiv, int64_t n) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (k < n) ipiv[k] = k + 1;
}

}  // namespace

template <class T>
cudaError_t LaunchLuTile(const MatrixView<T>& tile, int64_t first, const volatile uint32_t* stop,
                         LuControl<T>* control, cudaStream_t stream) {
  LuTileKernel<<<1, dim3(kTile, kRowGroups), 0, stream>>>(tile, first, stop, control);
  return cudaGetLastError();
}

cudaError_t LaunchIdentityPivots(int64_t* ipiv, int64_t n, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((n + kThreads - 1) / kThreads);
  IdentityPivotsKernel<<<blocks, kThreads, 0, stream>>>(ipiv, n);
  return cudaGetLastError();
}

template cudaError_t LaunchLuTile(const MatrixView<float>&, int64_t, const volatile uint32_t*,
                                  LuControl<float>*, cudaStream_t);
template cudaError_t LaunchLuTile(const MatrixView<double>&, int64_t, const volatile uint32_t*,
                                  LuControl<double>*, cudaStream_t);

}  // namespace crout
