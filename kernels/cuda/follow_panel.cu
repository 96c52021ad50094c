#include "kernels/cuda/follow_panel.h"

#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/cuda/interchanges.cuh"

namespace crout {
namespace {

constexpr int kWarps = 4;
constexpr int kColumns = 4;  // of a warp

// A lane holds a row of each of its warp's columns, and the row of L that is its own.
template <class T>
__global__ void __launch_bounds__(kWarps* kWarp)
    FollowPanelKernel(const LuPanel<T> panel, MatrixView<T> left, MatrixView<T> right) {
  AwaitKernelBefore();
  if (panel.control->halt != 0) return;
  const int lane = threadIdx.x % kWarp;
  const auto width = static_cast<int>(panel.a.cols);
  int64_t first = (static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp) * kColumns;
  const int64_t left_columns = (left.cols + kColumns - 1) / kColumns * kColumns;
  const bool solves = first >= left_columns;
  if (solves) first -= left_columns;
  const MatrixView<T>& a = solves ? right : left;
  T l[kWarp];
  if (solves) {
#pragma unroll
    for (int k = 0; k < kWarp - 1; ++k) l[k] = lane > k && lane < width ? panel.a(lane, k) : T{0};
  }
  const Moves moves = Trace(panel.ipiv + panel.begin, panel.begin, 0, width);
  T rows[kColumns];
  T others[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const bool exists = first + c < a.cols;
    rows[c] = exists && lane < width ? a(moves.row_from, first + c) : T{0};
    if (exists && moves.other_moves) others[c] = a(moves.other_from, first + c);
  }
  __syncwarp();
  if (solves) {
#pragma unroll
    for (int k = 0; k < kWarp - 1; ++k) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) rows[c] -= l[k] * __shfl_sync(kAllLanes, rows[c], k);
    }
  }
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    if (first + c >= a.cols) break;
    if (lane < width) a(lane, first + c) = rows[c];
    if (moves.other_moves) a(moves.other, first + c) = others[c];
  }
}

}  // namespace

template <class T>
cudaError_t LaunchFollowPanel(const LuPanel<T>& panel, const MatrixView<T>& left,
                              const MatrixView<T>& right, bool overlap, cudaStream_t stream) {
  const int64_t warps =
      (left.cols + kColumns - 1) / kColumns + (right.cols + kColumns - 1) / kColumns;
  if (warps == 0) return cudaSuccess;
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>((warps + kWarps - 1) / kWarps));
  config.blockDim = dim3(kWarps * kWarp);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = overlap ? 1 : 0;
  return cudaLaunchKernelEx(&config, FollowPanelKernel<T>, panel, left, right);
}

template cudaError_t LaunchFollowPanel(const LuPanel<float>&, const MatrixView<float>&,
                                       const MatrixView<float>&, bool, cudaStream_t);
template cudaError_t LaunchFollowPanel(const LuPanel<double>&, const MatrixView<double>&,
                                       const MatrixView<double>&, bool, cudaStream_t);

}  // namespace crout
