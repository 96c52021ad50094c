#include "kernels/cuda/interchange_rows.h"

#include "kernels/cuda/reduction.cuh"

namespace crout {
namespace {

constexpr unsigned kAll = 0xffffffffU;
constexpr int kWarps = 4;
constexpr int kColumns = 4;  // that a warp moves at a time

// Where the rows of one chunk of interchanges come from: row first + lane, and row `other`.
struct Sources {
  int64_t first_from;
  int64_t other;
  int64_t other_from;
};

// Follows both rows back through the interchanges of rows first..first + count with those in the
// lanes' `other`.
__device__ Sources Trace(int64_t first, int count, int64_t other) {
  const int64_t mine = first + threadIdx.x % kWarp;
  Sources sources = {mine, other, other};
  for (int step = count - 1; step >= 0; --step) {
    const int64_t row = first + step;
    const int64_t with = __shfl_sync(kAll, other, step);
    for (int64_t* from : {&sources.first_from, &sources.other_from}) {
      *from = *from == row ? with : *from == with ? row : *from;
    }
  }
  return sources;
}

// Chunks of 32 interchanges, one in each lane. All loads of a chunk come before its stores, so that
// nothing needs a second copy; two lanes may store the same element twice.
template <class T>
__global__ void __launch_bounds__(kWarps * kWarp)
    InterchangeRowsKernel(MatrixView<T> a, const int64_t* ipiv, int64_t begin, int64_t end,
                          const LuControl<T>* control) {
  if (control->halt != 0) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  for (int64_t first = begin; first < end; first += kWarp) {
    const int count = static_cast<int>(min(int64_t{kWarp}, end - first));
    const int64_t row = first + lane;
    const Sources from = Trace(first, count, lane < count ? ipiv[row] - 1 : row);
    const bool moves = lane < count && from.first_from != row;
    const bool other_moves = lane < count && from.other >= first + count;
    T values[kColumns];
    T others[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int64_t j = warp * kColumns + c;
      if (moves && j < a.cols) values[c] = a(from.first_from, j);
      if (other_moves && j < a.cols) others[c] = a(from.other_from, j);
    }
    __syncwarp();
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int64_t j = warp * kColumns + c;
      if (moves && j < a.cols) a(row, j) = values[c];
      if (other_moves && j < a.cols) a(from.other, j) = others[c];
    }
    __syncwarp();
  }
}

}  // namespace

template <class T>
cudaError_t LaunchInterchangeRows(const MatrixView<T>& a, const int64_t* ipiv, int64_t begin,
                                  int64_t end, const LuControl<T>* control, cudaStream_t stream) {
  if (a.cols == 0 || begin == end) return cudaSuccess;
  constexpr int64_t kPerBlock = kWarps * kColumns;
  const auto blocks = static_cast<unsigned>((a.cols + kPerBlock - 1) / kPerBlock);
  InterchangeRowsKernel<<<blocks, kWarps * kWarp, 0, stream>>>(a, ipiv, begin, end, control);
  return cudaGetLastError();
}

template cudaError_t LaunchInterchangeRows(const MatrixView<float>&, const int64_t*, int64_t,
                                           int64_t, const LuControl<float>*, cudaStream_t);
template cudaError_t LaunchInterchangeRows(const MatrixView<double>&, const int64_t*, int64_t,
                                           int64_t, const LuControl<double>*, cudaStream_t);

}  // namespace crout
