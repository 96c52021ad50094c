// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/irr_lu/irr_blas.h"
#include "kernels/cuda/irr_lu/member_update.cuh"

namespace crout::cuda {
namespace {

constexpr int kThreads = 128;

// One block per member and MemberBlocking::kChunk columns of B; a block handles several such groups
// if the grid is too small.
template <class T>
__global__ void __launch_bounds__(kThreads) SolveLeafKernel(IrrTrsm<T> trsm, const int32_t* order) {
  constexpr int kChunk = MemberBlocking<T>::kChunk;
  static_assert(kThreads >= kChunk);
  UpdateTiles<T>& tiles = SharedByBlock<UpdateTiles<T>>();
  const int32_t member = order[blockIdx.x];
  const auto t = trsm.t.Local(member, trsm.m, trsm.m);
  const auto b = trsm.b.Local(member, trsm.m, trsm.n);
  const auto rows = static_cast<int>(min(min(t.rows, t.cols), b.rows));
  if (rows == 0) return;
  const TriangleKind kind = {trsm.lower == (trsm.op == Op::kNone), trsm.unit};
  LoadTriangle(OpOf<T>(t, trsm.op), rows, kind, tiles);
  for (int64_t first = blockIdx.y * int64_t{kChunk}; first < b.cols;
       first += gridDim.y * int64_t{kChunk}) {
    const MatrixView<T> chunk = {&b(0, first), rows, min(b.cols - first, int64_t{kChunk}), b.ld};
    const auto count = static_cast<int>(chunk.cols);
    GatherRows<false>(chunk, 0, rows, 0, count, {}, tiles);
    __syncthreads();
    SolveTriangle<MemberBlocking<T>::kBlock>(kind, count, tiles);
    __syncthreads();
    StoreSolved(tiles, chunk, 0, rows, 0, count);
    __syncthreads();
  }
}

template <class T>
struct FromRightShared {
  static constexpr int kBlock = MemberBlocking<T>::kBlock;

  alignas(16) T u[kBlock][kBlock + 2];  // [row][column]: multipliers of a row's unknown
  DivideBy<T> diagonal[kBlock];
};

// Solves for row i of B, held in registers.
template <class T>
__device__ void SolveRow(const MatrixView<T>& b, int64_t i, int columns,
                         const FromRightShared<T>& shared) {
  constexpr int kBlock = MemberBlocking<T>::kBlock;
  if (i >= b.rows) return;
  T x[kBlock];
#pragma unroll
  for (int k = 0; k < kBlock; ++k) x[k] = k < columns ? b(i, k) : T{0};
#pragma unroll
  for (int k = 0; k < kBlock; ++k) {
    if (k >= columns) break;
    x[k] = shared.diagonal[k](x[k]);
    b(i, k) = x[k];
#pragma unroll
    for (int c = k + 1; c < kBlock; ++c) x[c] = MinusProduct(x[c], shared.u[k][c], x[k]);
  }
}

// One thread per row of B; a block handles several groups of rows if the grid is too small.
template <class T>
__global__ void __launch_bounds__(kThreads)
    SolveLeafFromRightKernel(IrrTrsmFromRight<T> trsm, const int32_t* order) {
  constexpr int kBlock = MemberBlocking<T>::kBlock;
  auto& shared = SharedByBlock<FromRightShared<T>>();
  const int32_t member = order[blockIdx.x];
  const auto u = trsm.u.Local(member, trsm.n, trsm.n);
  const auto b = trsm.b.Local(member, trsm.m, trsm.n);
  const auto columns = static_cast<int>(min(min(u.rows, u.cols), b.cols));
  if (columns == 0 || blockIdx.y * int64_t{kThreads} >= b.rows) return;
  for (int e = static_cast<int>(threadIdx.x); e < kBlock * kBlock; e += kThreads) {
    const int i = e % kBlock;
    const int k = e / kBlock;
    if (i > k || k >= columns) continue;
    if (i == k) {
      shared.diagonal[k] = DivideBy<T>(u(k, k));
    } else {
      shared.u[i][k] = u(i, k);
    }
  }
  __syncthreads();
  for (int64_t first = blockIdx.y * int64_t{kThreads}; first < b.rows;
       first += gridDim.y * int64_t{kThreads}) {
    SolveRow(b, first + threadIdx.x, columns, shared);
    // Otherwise the compiler loads the whole triangle into registers before the loop.
    __syncthreads();
  }
}

template <class T>
cudaError_t SolveLeaf(const IrrTrsm<T>& trsm, const IrrMembers& members, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(members.count),
                  BlocksOf(trsm.n, MemberBlocking<T>::kChunk));
  return LaunchDependent(SolveLeafKernel<T>, grid, kThreads, 0, false, stream, trsm, members.order);
}

}  // namespace

template <class T>
cudaError_t LaunchIrrTrsm(const IrrTrsm<T>& trsm, const IrrMembers& members, cudaStream_t stream) {
  constexpr int kLeaf = MemberBlocking<T>::kBlock;
  if (trsm.m <= 0 || trsm.n <= 0 || members.count == 0) return cudaSuccess;
  if (trsm.m <= kLeaf) return SolveLeaf(trsm, members, stream);
  const int cut = CutOf(trsm.m, kLeaf);
  IrrTrsm<T> upper_rows = trsm;
  upper_rows.m = cut;
  IrrTrsm<T> lower_rows = trsm;
  lower_rows.m = trsm.m - cut;
  lower_rows.t = trsm.t.At(cut, cut);
  lower_rows.b = trsm.b.At(cut, 0);
  // If op(T) is lower triangular, the unknowns of the upper rows come first.
  const bool forward = trsm.lower == (trsm.op == Op::kNone);
  const IrrTrsm<T>& first = forward ? upper_rows : lower_rows;
  const IrrTrsm<T>& second = forward ? lower_rows : upper_rows;
  cudaError_t code = LaunchIrrTrsm(first, members, stream);
  if (code != cudaSuccess) return code;
  IrrGemm<T> gemm;
  gemm.op_a = trsm.op;
  gemm.m = second.m;
  gemm.n = trsm.n;
  gemm.k = first.m;
  gemm.alpha = T{-1};
  gemm.a = trsm.lower ? trsm.t.At(cut, 0) : trsm.t.At(0, cut);
  gemm.b = {first.b.data, first.b.members, first.b.row, first.b.col};
  gemm.beta = T{1};
  gemm.c = second.b;
  code = LaunchIrrGemm(gemm, members, stream);
  return code != cudaSuccess ? code : LaunchIrrTrsm(second, members, stream);
}

template <class T>
cudaError_t LaunchIrrTrsmFromRight(const IrrTrsmFromRight<T>& trsm, const IrrMembers& members,
                                   cudaStream_t stream) {
  constexpr int kLeaf = MemberBlocking<T>::kBlock;
  if (trsm.m <= 0 || trsm.n <= 0 || members.count == 0) return cudaSuccess;
  if (trsm.n <= kLeaf) {
    const dim3 grid(static_cast<unsigned>(members.count), BlocksOf(trsm.m, kThreads));
    return LaunchDependent(SolveLeafFromRightKernel<T>, grid, kThreads, 0, false, stream, trsm,
                           members.order);
  }
  const int cut = CutOf(trsm.n, kLeaf);
  IrrTrsmFromRight<T> left = trsm;
  left.n = cut;
  IrrTrsmFromRight<T> right = trsm;
  right.n = trsm.n - cut;
  right.u = trsm.u.At(cut, cut);
  right.b = trsm.b.At(0, cut);
  cudaError_t code = LaunchIrrTrsmFromRight(left, members, stream);
  if (code != cudaSuccess) return code;
  IrrGemm<T> gemm;
  gemm.m = trsm.m;
  gemm.n = right.n;
  gemm.k = cut;
  gemm.alpha = T{-1};
  gemm.a = {trsm.b.data, trsm.b.members, trsm.b.row, trsm.b.col};
  gemm.b = trsm.u.At(0, cut);
  gemm.beta = T{1};
  gemm.c = right.b;
  code = LaunchIrrGemm(gemm, members, stream);
  return code != cudaSuccess ? code : LaunchIrrTrsmFromRight(right, members, stream);
}

template cudaError_t LaunchIrrTrsm(const IrrTrsm<float>&, const IrrMembers&, cudaStream_t);
template cudaError_t LaunchIrrTrsm(const IrrTrsm<double>&, const IrrMembers&, cudaStream_t);
template cudaError_t LaunchIrrTrsm(const IrrTrsm<Complex<float>>&, const IrrMembers&, cudaStream_t);
template cudaError_t LaunchIrrTrsm(const IrrTrsm<Complex<double>>&, const IrrMembers&,
                                   cudaStream_t);
template cudaError_t LaunchIrrTrsmFromRight(const IrrTrsmFromRight<float>&, const IrrMembers&,
                                            cudaStream_t);
template cudaError_t LaunchIrrTrsmFromRight(const IrrTrsmFromRight<double>&, const IrrMembers&,
                                            cudaStream_t);
template cudaError_t LaunchIrrTrsmFromRight(const IrrTrsmFromRight<Complex<float>>&,
                                            const IrrMembers&, cudaStream_t);
template cudaError_t LaunchIrrTrsmFromRight(const IrrTrsmFromRight<Complex<double>>&,
                                            const IrrMembers&, cudaStream_t);

}  // namespace crout::cuda
