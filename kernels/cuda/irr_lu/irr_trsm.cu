#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/irr_lu/irr_gemm.h"
#include "kernels/cuda/irr_lu/irr_trsm.h"
#include "kernels/cuda/irr_lu/member_update.cuh"

namespace crout::cuda {
namespace {

constexpr int kThreads = 128;

// A block for a member and MemberBlocking::kChunk columns of B, or every so many where the grid
// ends before they do.
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
cudaError_t SolveLeaf(const IrrTrsm<T>& trsm, const IrrMembers& members, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(members.count),
                  BlocksOf(trsm.n, MemberBlocking<T>::kChunk));
  return LaunchBehind(SolveLeafKernel<T>, grid, kThreads, 0, false, stream, trsm, members.order);
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
  // op(T) is lower triangular: the unknowns of the upper rows come first.
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

template cudaError_t LaunchIrrTrsm(const IrrTrsm<float>&, const IrrMembers&, cudaStream_t);
template cudaError_t LaunchIrrTrsm(const IrrTrsm<double>&, const IrrMembers&, cudaStream_t);
template cudaError_t LaunchIrrTrsm(const IrrTrsm<Complex<float>>&, const IrrMembers&, cudaStream_t);
template cudaError_t LaunchIrrTrsm(const IrrTrsm<Complex<double>>&, const IrrMembers&,
                                   cudaStream_t);

}  // namespace crout::cuda
