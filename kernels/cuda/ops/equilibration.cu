// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/matrix_kernels.h"
#include "kernels/cuda/ops/reduction.cuh"
#include "kernels/cuda/ops/sparse_rows.cuh"
#include "kernels/numerics/normalizing_scale.h"

namespace crout::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kColumns =
    kBlockThreads / kTile;  // columns that a block of the row kernel reads at a time
constexpr int kUnroll = 8;
constexpr double kSafeMinimum = 0x1p-1022;  // dlamch('S')

enum Least { kRowMin, kColMin, kZeroRow, kZeroCol };
enum Greatest { kRowMax, kColMax };

// Returns the scale of a line (a row or a column) from its largest entry, and updates the
// statistics.
__device__ double ScaleOf(double largest, int64_t line, Least least, Greatest greatest, Least zero,
                          ReductionScratch* scratch) {
  atomicMin(&scratch->least[least], AbsBits(largest));
  atomicMax(&scratch->greatest[greatest], AbsBits(largest));
  if (largest == 0) atomicMin(&scratch->least[zero], static_cast<unsigned long long>(line));
  return NormalizingScale(largest);
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    RowScalesKernel(MatrixView<const T> a, double* row, ReductionScratch* scratch) {
  const int x = threadIdx.x % kTile;
  const int y = threadIdx.x / kTile;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kTile + x;
  double largest = 0;
  if (i < a.rows) {
    int64_t j = y;
    for (; j + (kUnroll - 1) * kColumns < a.cols; j += kUnroll * kColumns) {
      T values[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) values[u] = a(i, j + u * kColumns);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        largest = fmax(largest, LargestPart(ToFloat64(values[u])));
      }
    }
    for (; j < a.cols; j += kColumns) {
      largest = fmax(largest, LargestPart(ToFloat64(a(i, j))));
    }
  }
  __shared__ double partial[kColumns][kTile];
  partial[y][x] = largest;
  __syncthreads();
  if (y != 0 || i >= a.rows) return;
  for (int k = 1; k < kColumns; ++k) largest = fmax(largest, partial[k][x]);
  row[i] = ScaleOf(largest, i, kRowMin, kRowMax, kZeroRow, scratch);
}

// The smallest value over the largest, both kept away from underflow and overflow like in geequb.
__device__ double Condition(const ReductionScratch& scratch, Least least, Greatest greatest) {
  const double smallest = FromBits(Load(scratch.least[least]));
  const double largest = FromBits(Load(scratch.greatest[greatest]));
  return fmax(smallest, kSafeMinimum) / fmin(fmax(largest, kSafeMinimum), 1 / kSafeMinimum);
}

__device__ void Publish(int64_t rows, int64_t cols, ReductionScratch* scratch, ScaleStats* report) {
  const unsigned long long zero_row = Load(scratch->least[kZeroRow]);
  const unsigned long long zero_col = Load(scratch->least[kZeroCol]);
  ScaleStats stats;
  if (zero_row != ReductionScratch::kNone) {
    stats.zero_line = static_cast<int64_t>(zero_row) + 1;
  } else if (zero_col != ReductionScratch::kNone) {
    stats.zero_line = rows + static_cast<int64_t>(zero_col) + 1;
  }
  if (rows > 0 && cols > 0) {
    stats.row_condition = Condition(*scratch, kRowMin, kRowMax);
    stats.col_condition = Condition(*scratch, kColMin, kColMax);
    stats.max_abs = FromBits(Load(scratch->greatest[kRowMax]));
  }
  *report = stats;
  Reset(scratch);
}

// One block per column. Requires the rows' scales.
template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    ColScalesKernel(MatrixView<const T> a, const double* row, double* col,
                    ReductionScratch* scratch, ScaleStats* report) {
  const int64_t j = blockIdx.x;
  if (j < a.cols) {
    double largest = 0;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < a.rows; i += kBlockThreads) {
      largest = fmax(largest, LargestPart(ToFloat64(a(i, j))) * row[i]);
    }
    largest = BlockReduce(largest, Max());
    if (threadIdx.x == 0) col[j] = ScaleOf(largest, j, kColMin, kColMax, kZeroCol, scratch);
  }
  if (IsLastBlock(scratch) && threadIdx.x == 0) Publish(a.rows, a.cols, scratch, report);
}

// One warp per row.
template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    SparseRowScalesKernel(SparseRows<T> rows, double* row, ReductionScratch* scratch) {
  const int64_t i = RowOfWarp();
  if (i >= rows.n) return;
  double largest = 0;
  rows.ForEach(i, LaneOfWarp(), kWarp,
               [&](int64_t, T v) { largest = fmax(largest, LargestPart(ToFloat64(v))); });
  largest = WarpReduce(largest, Max());
  if (LaneOfWarp() == 0) row[i] = ScaleOf(largest, i, kRowMin, kRowMax, kZeroRow, scratch);
}

// One warp per column. Requires the rows' scales.
template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    SparseColScalesKernel(SparseRows<T> columns, const double* row, double* col,
                          ReductionScratch* scratch, ScaleStats* report) {
  const int64_t j = RowOfWarp();
  if (j < columns.n) {
    double largest = 0;
    columns.ForEach(j, LaneOfWarp(), kWarp, [&](int64_t i, T v) {
      largest = fmax(largest, LargestPart(ToFloat64(v)) * row[i]);
    });
    largest = WarpReduce(largest, Max());
    if (LaneOfWarp() == 0) col[j] = ScaleOf(largest, j, kColMin, kColMax, kZeroCol, scratch);
  }
  if (IsLastBlock(scratch) && threadIdx.x == 0) Publish(columns.n, columns.n, scratch, report);
}

// One block per column. The parts of complex numbers count as separate numbers.
template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    ColumnScalesKernel(MatrixView<T> in, const double* row, int exponent, double* down,
                       double* up) {
  constexpr int kParts = kIsComplex<T> ? 2 : 1;
  const int64_t j = blockIdx.x;
  const auto* const column = reinterpret_cast<const double*>(&in(0, j));
  double largest = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < in.rows * kParts; i += kBlockThreads) {
    const double value = column[i];
    largest = MaxKeepingNan(largest, fabs(row == nullptr ? value : row[i / kParts] * value));
  }
  largest = BlockReduce(largest, Max());
  if (threadIdx.x != 0) return;
  down[j] = NormalizingScale(largest, exponent);
  up[j] = 1 / down[j];
}

}  // namespace

cudaError_t LaunchColumnScales(const AnyMatrix& in, const double* row, int exponent, double* down,
                               double* up, cudaStream_t stream) {
  if (in.cols == 0) return cudaSuccess;
  DispatchWide(in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ColumnScalesKernel<<<static_cast<unsigned>(in.cols), kBlockThreads, 0, stream>>>(
        in.As<T>(), row, exponent, down, up);
  });
  return cudaGetLastError();
}

cudaError_t LaunchEquilibrationScales(const AnyMatrix& a, double* row, double* col,
                                      ReductionScratch* scratch, ScaleStats* report,
                                      cudaStream_t stream) {
  // At least one block, which publishes the report even for an empty matrix.
  const auto tiles = static_cast<unsigned>(std::max<int64_t>(1, (a.rows + kTile - 1) / kTile));
  const auto cols = static_cast<unsigned>(std::max<int64_t>(1, a.cols));
  DispatchDevice(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<const T> view{reinterpret_cast<const T*>(a.data), a.rows, a.cols, a.ld};
    RowScalesKernel<<<tiles, kBlockThreads, 0, stream>>>(view, row, scratch);
    ColScalesKernel<<<cols, kBlockThreads, 0, stream>>>(view, row, col, scratch, report);
  });
  return cudaGetLastError();
}

cudaError_t LaunchEquilibrationScales(const AnySparse& a, double* row, double* col,
                                      ReductionScratch* scratch, ScaleStats* report,
                                      cudaStream_t stream) {
  const unsigned blocks = BlocksOfWarps(a.n);
  DispatchDevice(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    SparseRowScalesKernel<<<blocks, kBlockThreads, 0, stream>>>(SparseRows<T>::ForOp(a, Op::kNone),
                                                                row, scratch);
    SparseColScalesKernel<<<blocks, kBlockThreads, 0, stream>>>(
        SparseRows<T>::ForOp(a, Op::kTranspose), row, col, scratch, report);
  });
  return cudaGetLastError();
}

}  // namespace crout::cuda
