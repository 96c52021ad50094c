// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/matrix_kernels.h"
#include "kernels/cuda/ops/reduction.cuh"
#include "kernels/cuda/ops/sparse_rows.cuh"

namespace crout::cuda {
namespace {

// A packed matrix consists of `lines` lines (columns, or rows if row-major) of `length` contiguous
// elements. One kernel sums along the lines in some of its blocks and across them in the others, so
// no sum spans two blocks. For a matrix of up to about 2,500 x 2,500, the second read comes from
// the L2 cache.
//
// In a larger matrix whose lines have at least 6,113 elements (kTilesForAll tiles), the blocks that
// sum across also sum along the lines. Each line is summed soon after all blocks have read it, so
// the second read comes from the L2 cache too.
constexpr int kTile = 32;                     // positions per block that sums across the lines
constexpr int kRows = kBlockThreads / kTile;  // lines that it reads at a time
constexpr int kUnroll = 8;                    // loads in flight per thread
// Fewer blocks than kTilesForAll do not saturate a GPU's memory.
constexpr int64_t kTilesForAll = 192;
constexpr int64_t kCachedBytes = 32 << 20;

enum Least { kNonFinite, kOverflow };
enum Greatest { kAlong, kAcross, kMaxAbs };

struct PackedLines {
  const void* data;
  int64_t lines;
  int64_t length;
  bool narrow;        // the target's real parts are float32
  bool along_is_one;  // sums along the lines give the 1-norm
};

// Results of one thread for its elements of a line.
template <class T>
struct LineFacts {
  // Adds the element at this offset of the payload.
  __device__ void Add(T value, unsigned long long offset, bool narrow) {
    const double magnitude = Modulus(value);
    sum += magnitude;
    greatest = fmax(greatest, magnitude);  // ignores NaN, which is reported as non-finite
    if (!IsFinite(value)) {
      non_finite = min(non_finite, offset);
    } else if (narrow && !isfinite(static_cast<float>(LargestPart(value)))) {
      overflow = min(overflow, offset);
    }
  }

  // Called by every thread of the block at the end of each line. Resets the sum.
  __device__ void EndLine(ReductionScratch* scratch) {
    sum = BlockReduce(sum, Sum());
    if (threadIdx.x == 0) atomicMax(&scratch->greatest[kAlong], AbsBits(sum));
    sum = 0;
  }
  // Called after the last line.
  __device__ void Raise(ReductionScratch* scratch) {
    greatest = BlockReduce(greatest, Max());
    if (non_finite != ReductionScratch::kNone) atomicMin(&scratch->least[kNonFinite], non_finite);
    if (overflow != ReductionScratch::kNone) atomicMin(&scratch->least[kOverflow], overflow);
    if (threadIdx.x == 0) atomicMax(&scratch->greatest[kMaxAbs], AbsBits(greatest));
  }

  double sum = 0;
  double greatest = 0;
  unsigned long long non_finite = ReductionScratch::kNone;
  unsigned long long overflow = ReductionScratch::kNone;
};

template <class T>
__device__ void SumAlong(const PackedLines& in, int64_t line, LineFacts<T>& facts,
                         ReductionScratch* scratch) {
  const T* data = static_cast<const T*>(in.data) + line * in.length;
#pragma unroll kUnroll
  for (int64_t i = threadIdx.x; i < in.length; i += kBlockThreads) {
    facts.Add(data[i], static_cast<unsigned long long>(line * in.length + i), in.narrow);
  }
  facts.EndLine(scratch);
}

// Combines the sums of kRows threads for each of kTile positions. Called by every thread of the
// block.
__device__ void RaiseAcross(double sum, ReductionScratch* scratch) {
  const int x = threadIdx.x % kTile;
  const int y = threadIdx.x / kTile;
  __shared__ double sums[kRows][kTile];
  sums[y][x] = sum;
  __syncthreads();
  if (y != 0) return;
  for (int row = 1; row < kRows; ++row) sum += sums[row][x];
  atomicMax(&scratch->greatest[kAcross], AbsBits(sum));
}

// Adds every kRows-th line from `first`, a multiple of kRows, up to `end` to the sum of the
// thread's position in the tile.
template <class T>
__device__ void SumAcross(const PackedLines& in, int64_t tile, int64_t first, int64_t end,
                          double& sum) {
  const int64_t position = tile * kTile + threadIdx.x % kTile;
  if (position >= in.length) return;
  const T* data = static_cast<const T*>(in.data) + position;
  int64_t line = first + threadIdx.x / kTile;
  for (; line + (kUnroll - 1) * kRows < end; line += kUnroll * kRows) {
    T values[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) values[u] = data[(line + u * kRows) * in.length];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) sum += Modulus(values[u]);
  }
  for (; line < end; line += kRows) sum += Modulus(data[line * in.length]);
}

// In sparse columns and rows, each thread sums the entries that it would sum in the dense form;
// zeros would add nothing, so the bits are the same. A thread skips most entries, but lines are
// short.
template <class T>
__device__ void SumAlong(const SparseRows<T>& columns, int64_t j, bool narrow,
                         ReductionScratch* scratch) {
  LineFacts<T> facts;
  columns.ForEach(j, 0, 1, [&](int64_t i, T v) {
    if (i % kBlockThreads != threadIdx.x) return;
    facts.Add(v, static_cast<unsigned long long>(j * columns.n + i), narrow);
  });
  facts.EndLine(scratch);
  facts.Raise(scratch);
}

template <class T>
__device__ void SumAcross(const SparseRows<T>& rows, int64_t tile, ReductionScratch* scratch) {
  const int64_t i = tile * kTile + threadIdx.x % kTile;
  double sum = 0;
  if (i < rows.n) {
    rows.ForEach(i, 0, 1, [&](int64_t j, T v) {
      if (j % kRows == threadIdx.x / kTile) sum += Modulus(v);
    });
  }
  RaiseAcross(sum, scratch);
}

__device__ int64_t Offset(unsigned long long word) {
  return word == ReductionScratch::kNone ? -1 : static_cast<int64_t>(word);
}

// Writes the results of all blocks to the report. Called only by the block that ends last.
__device__ void Publish(bool along_is_one, ReductionScratch* scratch, MatrixStats* report) {
  report->first_non_finite = Offset(Load(scratch->least[kNonFinite]));
  report->first_overflow = Offset(Load(scratch->least[kOverflow]));
  const double along = FromBits(Load(scratch->greatest[kAlong]));
  const double across = FromBits(Load(scratch->greatest[kAcross]));
  report->norm_one = along_is_one ? along : across;
  report->norm_inf = along_is_one ? across : along;
  report->max_abs = FromBits(Load(scratch->greatest[kMaxAbs]));
  Reset(scratch);
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    MatrixStatsKernel(PackedLines in, int64_t tiles, ReductionScratch* scratch,
                      MatrixStats* report) {
  if (blockIdx.x < tiles) {
    double sum = 0;
    SumAcross<T>(in, blockIdx.x, 0, in.lines, sum);
    RaiseAcross(sum, scratch);
  } else if (blockIdx.x - tiles < in.lines) {
    LineFacts<T> facts;
    SumAlong<T>(in, blockIdx.x - tiles, facts, scratch);
    facts.Raise(scratch);
  }
  if (IsLastBlock(scratch) && threadIdx.x == 0) Publish(in.along_is_one, scratch, report);
}

// Computes the same bits with one block per tile. In each round, the blocks read as many lines
// across as there are blocks (rounded down), so that each block then sums along at most one of
// them.
template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    LargeMatrixStatsKernel(PackedLines in, ReductionScratch* scratch, MatrixStats* report) {
  const int64_t tile = blockIdx.x;
  const int64_t at_once = gridDim.x / kRows * kRows;
  double across = 0;
  LineFacts<T> facts;
  for (int64_t first = 0; first < in.lines; first += at_once) {
    const int64_t end = min(first + at_once, in.lines);
    SumAcross<T>(in, tile, first, end, across);
    if (first + tile < end) SumAlong<T>(in, first + tile, facts, scratch);
  }
  RaiseAcross(across, scratch);
  facts.Raise(scratch);
  if (IsLastBlock(scratch) && threadIdx.x == 0) Publish(in.along_is_one, scratch, report);
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    SparseStatsKernel(SparseRows<T> rows, SparseRows<T> columns, bool narrow, int64_t tiles,
                      ReductionScratch* scratch, MatrixStats* report) {
  if (blockIdx.x < tiles) {
    SumAcross(rows, blockIdx.x, scratch);
  } else if (blockIdx.x - tiles < columns.n) {
    SumAlong(columns, blockIdx.x - tiles, narrow, scratch);
  }
  if (IsLastBlock(scratch) && threadIdx.x == 0) Publish(true, scratch, report);
}

}  // namespace

cudaError_t LaunchMatrixStats(const PackedMatrix& in, DType target, ReductionScratch* scratch,
                              MatrixStats* report, cudaStream_t stream) {
  const bool row_major = in.layout == Layout::kRowMajor;
  PackedLines lines;
  lines.data = in.data;
  lines.lines = row_major ? in.rows : in.cols;
  lines.length = row_major ? in.cols : in.rows;
  lines.narrow = RealOf(target) == DType::kFloat32;
  lines.along_is_one = !row_major;
  const int64_t tiles = (lines.length + kTile - 1) / kTile;
  const bool large =
      tiles >= kTilesForAll &&
      lines.lines * lines.length * static_cast<int64_t>(SizeOf(in.dtype)) >= kCachedBytes;
  // At least one block, which publishes zeros for an empty matrix.
  const auto blocks =
      static_cast<unsigned>(large ? tiles : std::max<int64_t>(1, tiles + lines.lines));
  DispatchDevice(in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (large) {
      LargeMatrixStatsKernel<T><<<blocks, kBlockThreads, 0, stream>>>(lines, scratch, report);
      return;
    }
    MatrixStatsKernel<T><<<blocks, kBlockThreads, 0, stream>>>(lines, tiles, scratch, report);
  });
  return cudaGetLastError();
}

cudaError_t LaunchMatrixStats(const AnySparse& in, DType target, ReductionScratch* scratch,
                              MatrixStats* report, cudaStream_t stream) {
  const int64_t tiles = (in.n + kTile - 1) / kTile;
  const auto blocks = static_cast<unsigned>(std::max<int64_t>(1, tiles + in.n));
  DispatchDevice(in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    SparseStatsKernel<<<blocks, kBlockThreads, 0, stream>>>(
        SparseRows<T>::ForOp(in, Op::kNone), SparseRows<T>::ForOp(in, Op::kTranspose),
        RealOf(target) == DType::kFloat32, tiles, scratch, report);
  });
  return cudaGetLastError();
}

}  // namespace crout::cuda
