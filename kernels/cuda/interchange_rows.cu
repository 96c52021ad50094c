#include "kernels/cuda/interchange_rows.h"

#include "kernels/cuda/reduction.cuh"

namespace crout {
namespace {

constexpr unsigned kAll = 0xffffffffU;
constexpr int kWarps = 4;
constexpr int kColumns = 4;  // that a warp moves at a time

// What one lane moves for a chunk of interchanges: rows `row` and `other` come from elsewhere.
struct Moves {
  int row;
  int row_from;
  int other;
  int other_from;
  bool row_moves;
  bool other_moves;  // unless it is a row of the chunk, whose lane sees to it
};

// The chunk of interchanges [first, end), at most one for each lane: follows both rows of each back
// through all of them.
__device__ Moves Trace(const int64_t* ipiv, int first, int end) {
  const int count = min(kWarp, end - first);
  const int lane = threadIdx.x % kWarp;
  Moves moves;
  moves.row = first + lane;
  moves.other = lane < count ? static_cast<int>(ipiv[moves.row] - 1) : moves.row;
  moves.row_from = moves.row;
  moves.other_from = moves.other;
  for (int step = count - 1; step >= 0; --step) {
    const int row = first + step;
    const int with = __shfl_sync(kAll, moves.other, step);
    for (int* from : {&moves.row_from, &moves.other_from}) {
      *from = *from == row ? with : *from == with ? row : *from;
    }
  }
  moves.row_moves = lane < count && moves.row_from != moves.row;
  moves.other_moves = lane < count && moves.other >= first + count;
  return moves;
}

// All loads of a chunk come before its stores, so that nothing needs a second copy; two lanes may
// store the same element twice. The next chunk is traced while the loads are under way.
template <class T>
__global__ void __launch_bounds__(kWarps* kWarp)
    InterchangeRowsKernel(MatrixView<T> a, const int64_t* ipiv, int begin, int end,
                          const LuControl<T>* control) {
  if (control->halt != 0) return;
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  Moves next = Trace(ipiv, begin, end);
  for (int first = begin; first < end; first += kWarp) {
    const Moves moves = next;
    T values[kColumns];
    T others[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int64_t j = warp * kColumns + c;
      if (moves.row_moves && j < a.cols) values[c] = a(moves.row_from, j);
      if (moves.other_moves && j < a.cols) others[c] = a(moves.other_from, j);
    }
    if (first + kWarp < end) next = Trace(ipiv, first + kWarp, end);
    __syncwarp();
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int64_t j = warp * kColumns + c;
      if (moves.row_moves && j < a.cols) a(moves.row, j) = values[c];
      if (moves.other_moves && j < a.cols) a(moves.other, j) = others[c];
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
  InterchangeRowsKernel<<<blocks, kWarps * kWarp, 0, stream>>>(a, ipiv, static_cast<int>(begin),
                                                               static_cast<int>(end), control);
  return cudaGetLastError();
}

template cudaError_t LaunchInterchangeRows(const MatrixView<float>&, const int64_t*, int64_t,
                                           int64_t, const LuControl<float>*, cudaStream_t);
template cudaError_t LaunchInterchangeRows(const MatrixView<double>&, const int64_t*, int64_t,
                                           int64_t, const LuControl<double>*, cudaStream_t);

}  // namespace crout
