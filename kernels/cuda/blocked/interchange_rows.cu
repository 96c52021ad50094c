// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/blocked/interchange_rows.h"

#include <algorithm>

#include "kernels/cuda/blocked/interchange_plan.cuh"
#include "kernels/cuda/blocked/interchanges.cuh"
#include "kernels/cuda/device/complex.h"

namespace crout::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kColumns = 4;      // columns that a warp moves at a time
constexpr int kPlanColumns = 8;  // columns that a block moves at a time
// A plan is faster for longer runs: a separate kernel computes it, and then all rows move at once.
constexpr int64_t kLongestTraced = 64;

// All loads of a chunk precede its stores, so no second copy is needed; two lanes may store the
// same element twice. The next chunk is traced while the loads are in flight.
template <class T>
__global__ void __launch_bounds__(kWarps* kWarp)
    TraceAndMoveKernel(MatrixView<T> a, const int64_t* ipiv, int begin, int end,
                       const LuControl<T>* control) {
  if (control->halt != 0) return;
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  Moves next = Trace(ipiv, 0, begin, end);
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
    if (first + kWarp < end) next = Trace(ipiv, 0, first + kWarp, end);
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

template <class T>
__global__ void __launch_bounds__(InterchangePlan::kMaxRows)
    PlanKernel(const int64_t* ipiv, int first, int count, InterchangePlan* plan,
               const LuControl<T>* control) {
  if (control->halt == 0) FindInterchangePlan(ipiv + first, first, count, plan);
}

// Like TraceAndMoveKernel, but by a plan, with one thread per row of the plan.
template <class T>
__global__ void __launch_bounds__(InterchangePlan::kMaxRows)
    MoveKernel(MatrixView<T> a, const InterchangePlan* plan, const LuControl<T>* control) {
  if (BlockHalted(control)) return;
  const int i = threadIdx.x;
  const int row_from = plan->row_from[i];
  const int other = plan->other[i];
  const int other_from = plan->other_from[i];
  const bool moves = row_from != i;
  for (int64_t begin = int64_t{blockIdx.x} * kPlanColumns; begin < a.cols;
       begin += int64_t{gridDim.x} * kPlanColumns) {
    T values[kPlanColumns];
    T others[kPlanColumns];
#pragma unroll
    for (int c = 0; c < kPlanColumns; ++c) {
      const int64_t j = begin + c;
      if (j < a.cols && moves) values[c] = a(row_from, j);
      if (j < a.cols && other >= 0) others[c] = a(other_from, j);
    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < kPlanColumns; ++c) {
      const int64_t j = begin + c;
      if (j < a.cols && moves) a(i, j) = values[c];
      if (j < a.cols && other >= 0) a(other, j) = others[c];
    }
  }
}

unsigned BlocksFor(int64_t columns, int64_t each) {
  return static_cast<unsigned>((columns + each - 1) / each);
}

}  // namespace

template <class T>
cudaError_t LaunchInterchangeRows(const MatrixView<T>& a, const InterchangePlan* plan,
                                  int64_t count, const LuControl<T>* control, cudaStream_t stream,
                                  unsigned max_blocks) {
  if (a.cols == 0 || count == 0) return cudaSuccess;
  const unsigned blocks = std::min(max_blocks, BlocksFor(a.cols, kPlanColumns));
  const unsigned threads = BlocksFor(count, kWarp) * kWarp;
  MoveKernel<<<blocks, threads, 0, stream>>>(a, plan, control);
  return cudaGetLastError();
}

template <class T>
cudaError_t LaunchInterchangeRows(const MatrixView<T>& a, const int64_t* ipiv, int64_t begin,
                                  int64_t end, InterchangePlan* plan, const LuControl<T>* control,
                                  cudaStream_t stream) {
  if (a.cols == 0 || begin == end) return cudaSuccess;
  if (end - begin <= kLongestTraced) {
    TraceAndMoveKernel<<<BlocksFor(a.cols, kWarps * kColumns), kWarps * kWarp, 0, stream>>>(
        a, ipiv, static_cast<int>(begin), static_cast<int>(end), control);
    return cudaGetLastError();
  }
  for (int64_t first = begin; first < end; first += InterchangePlan::kMaxRows) {
    const int count = static_cast<int>(std::min<int64_t>(InterchangePlan::kMaxRows, end - first));
    PlanKernel<<<1, InterchangePlan::kMaxRows, 0, stream>>>(ipiv, static_cast<int>(first), count,
                                                            plan, control);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
    const MatrixView<T> rows = {a.data + first, a.rows - first, a.cols, a.ld};
    const cudaError_t error = LaunchInterchangeRows(rows, plan, count, control, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

template cudaError_t LaunchInterchangeRows(const MatrixView<float>&, const InterchangePlan*,
                                           int64_t, const LuControl<float>*, cudaStream_t,
                                           unsigned);
template cudaError_t LaunchInterchangeRows(const MatrixView<double>&, const InterchangePlan*,
                                           int64_t, const LuControl<double>*, cudaStream_t,
                                           unsigned);
template cudaError_t LaunchInterchangeRows(const MatrixView<float>&, const int64_t*, int64_t,
                                           int64_t, InterchangePlan*, const LuControl<float>*,
                                           cudaStream_t);
template cudaError_t LaunchInterchangeRows(const MatrixView<double>&, const int64_t*, int64_t,
                                           int64_t, InterchangePlan*, const LuControl<double>*,
                                           cudaStream_t);
template cudaError_t LaunchInterchangeRows(const MatrixView<Complex<float>>&,
                                           const InterchangePlan*, int64_t,
                                           const LuControl<Complex<float>>*, cudaStream_t,
                                           unsigned);
template cudaError_t LaunchInterchangeRows(const MatrixView<Complex<double>>&,
                                           const InterchangePlan*, int64_t,
                                           const LuControl<Complex<double>>*, cudaStream_t,
                                           unsigned);
template cudaError_t LaunchInterchangeRows(const MatrixView<Complex<float>>&, const int64_t*,
                                           int64_t, int64_t, InterchangePlan*,
                                           const LuControl<Complex<float>>*, cudaStream_t);
template cudaError_t LaunchInterchangeRows(const MatrixView<Complex<double>>&, const int64_t*,
                                           int64_t, int64_t, InterchangePlan*,
                                           const LuControl<Complex<double>>*, cudaStream_t);

}  // namespace crout::cuda
