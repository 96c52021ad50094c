// SPDX-License-Identifier: Apache-2.0

// Solves with a member's factors with one block of threads.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_MEMBER_SOLVE_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_MEMBER_SOLVE_CUH_

#include "kernels/cuda/irr_lu/member_update.cuh"

namespace crout::cuda {

template <class T>
struct MemberSolveShared {
  static constexpr int kTraced = 4;  // chunks of interchanges that are traced at a time

  UpdateTiles<T> tiles;
  Moves moves[kTraced][kWarp];
};

// Substitution by blocks of MemberBlocking::kBlock unknowns, for MemberBlocking::kChunk right-hand
// sides at a time. The block must have at least as many threads.
template <class T>
class MemberSolve {
 public:
  // `lu`: L and U of a square matrix. `ipiv`: the interchanges of its rows.
  __device__ MemberSolve(const MatrixView<const T>& lu, const int64_t* ipiv, Op op,
                         MemberSolveShared<T>& shared)
      : order_(static_cast<int>(lu.rows)),
        op_(op),
        matrix_(OpOf<T>(lu, op)),
        ipiv_(ipiv),
        shared_(shared) {}

  // b := op(A)^-1 b.
  __device__ void Solve(const MatrixView<T>& b) {
    for (int64_t first = 0; first < b.cols; first += kChunk) {
      const int64_t count = b.cols - first < kChunk ? b.cols - first : kChunk;
      SolveChunk({&b(0, first), b.rows, count, b.ld});
    }
  }

 private:
  static constexpr int kBlock = MemberBlocking<T>::kBlock;
  static constexpr int kChunk = MemberBlocking<T>::kChunk;

  __device__ void SolveChunk(const MatrixView<T>& b) {
    const int last = (order_ - 1) / kBlock * kBlock;
    const bool transposed = op_ != Op::kNone;
    if (!transposed) Exchange<false>(b);
    for (int begin = 0; begin <= last; begin += kBlock) Step({true, !transposed}, begin, b);
    for (int begin = last; begin >= 0; begin -= kBlock) Step({false, transposed}, begin, b);
    if (transposed) Exchange<true>(b);
  }

  // Solves for the block of unknowns from `begin` on, and subtracts their contribution from the
  // remaining rows.
  __device__ void Step(TriangleKind kind, int begin, const MatrixView<T>& b) {
    const int width = min(kBlock, order_ - begin);
    const auto count = static_cast<int>(b.cols);
    UpdateTiles<T>& tiles = shared_.tiles;
    LoadTriangle(matrix_.From(begin, begin), width, kind, tiles);
    GatherRows<false>(b, begin, width, 0, count, {}, tiles);
    __syncthreads();
    SolveTriangle<kBlock>(kind, count, tiles);
    __syncthreads();
    StoreSolved(tiles, b, begin, width, 0, count);
    const int rest = kind.lower ? begin + width : 0;
    const int rows = kind.lower ? order_ - rest : begin;
    SubtractProduct<kBlock>(matrix_.From(rest, begin), width, tiles,
                            MatrixView<T>{&b(rest, 0), rows, b.cols, b.ld});
    __syncthreads();
  }

  // Applies the factorization's row interchanges to b, or undoes them with kInverse. Each warp
  // traces one chunk of interchanges; then all warps apply the chunks in order to their columns.
  template <bool kInverse>
  __device__ void Exchange(const MatrixView<T>& b) {
    constexpr int kTraced = MemberSolveShared<T>::kTraced;
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int chunks = (order_ + kWarp - 1) / kWarp;
    for (int done = 0; done < chunks; done += kTraced) {
      const int count = min(kTraced, chunks - done);
      const auto chunk = [&](int k) { return kInverse ? chunks - 1 - done - k : done + k; };
      if (warp < count) {
        shared_.moves[warp][lane] = Trace(ipiv_, 0, chunk(warp) * kWarp, order_);
      }
      __syncthreads();
      for (int k = 0; k < count; ++k) {
        ExchangeRows<kInverse>(b, 0, static_cast<int>(b.cols), shared_.moves[k][lane]);
        __syncwarp();
      }
      __syncthreads();
    }
  }

  const int order_;
  const Op op_;
  const StridedMatrix<T> matrix_;
  const int64_t* const ipiv_;
  MemberSolveShared<T>& shared_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_MEMBER_SOLVE_CUH_
