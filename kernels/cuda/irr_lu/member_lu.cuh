// SPDX-License-Identifier: Apache-2.0

// Factors a whole member with one block of threads.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_MEMBER_LU_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_MEMBER_LU_CUH_

#include "kernels/cuda/irr_lu/member_panel.cuh"
#include "kernels/cuda/irr_lu/member_update.cuh"

namespace crout::cuda {

template <class T, int kThreads>
struct MemberLuShared {
  static constexpr int kRows = 2;  // per thread, at most
  static constexpr int kMaxRows = kRows * kThreads;

  union {
    PanelSlots<T, kThreads> slots;
    UpdateTiles<T> tiles;
    int source[kMaxRows];
  };
  Moves moves[kWarp];
};

// Right-looking, by blocks of MemberBlocking::kBlock columns, each factored as two panels.
// Interchanges to the left of a block are applied together at the end, with contiguous accesses
// along the columns. kInRegisters: keep panels in registers if their rows fit; benchmarks disable
// it to measure the gain.
template <class T, int kThreads, bool kInRegisters = true>
class MemberLu {
 public:
  using Shared = MemberLuShared<T, kThreads>;

  // `least`: the bounds of this member's pivots.
  __device__ MemberLu(const MatrixView<T>& a, int64_t* ipiv, const MinPivots<T>& least,
                      Shared& shared)
      : a_(a),
        rows_(static_cast<int>(a.rows)),
        cols_(static_cast<int>(a.cols)),
        ipiv_(ipiv),
        least_(least),
        shared_(shared) {}

  // Factors a member of at most Shared::kMaxRows rows. Returns LAPACK's info, the same in all
  // threads of the block.
  __device__ int Factor() {
    const int diagonal = min(rows_, cols_);
    int info = 0;
    for (int begin = 0; begin < diagonal; begin += kBlock) {
      const int width = min(kBlock, diagonal - begin);
      const int singular = FactorBlock(begin, width);
      if (info == 0 && singular != 0) info = begin + singular;
      if (begin + width < cols_) UpdateColumns<kBlock>(begin, width, cols_);
    }
    ExchangeLeft(diagonal);
    return info;
  }

  // Factors columns [begin, begin + width), width <= MemberBlocking::kBlock, from row `begin` on,
  // of a member of any size. Returns 0, or the 1-based index in the block of the first column
  // without a pivot.
  __device__ int FactorBlock(int begin, int width) {
    int info = 0;
    for (int done = 0; done < width; done += kPanel) {
      const int panel = min(kPanel, width - done);
      const int singular = FactorPanel(begin + done, panel);
      if (info == 0 && singular != 0) info = done + singular;
      if (width <= kPanel) break;
      if (done > 0) {
        Trace(begin + done, panel);
        ExchangeRows<false>(a_, begin, done, shared_.moves[Lane()]);
        __syncthreads();
      } else {
        UpdateColumns<kPanel>(begin, panel, begin + width);
      }
    }
    return info;
  }

  // Updates the columns from begin + width to `end` by the factored columns [begin, begin + width).
  // kDepth: kBlock, or kPanel if the width is at most kPanel.
  template <int kDepth>
  __device__ void UpdateColumns(int begin, int width, int end) {
    constexpr TriangleKind kUnitLower = {true, true};
    LoadTriangle(StridedMatrix<T>{&a_(begin, begin), 1, a_.ld}, width, kUnitLower, shared_.tiles);
    Trace(begin, width);
    const Moves moves = shared_.moves[Lane()];
    const int below = begin + width;
    const StridedMatrix<T> l = {&a_(below, begin), 1, a_.ld};
    for (int first = below; first < end; first += kChunk) {
      const int count = min(kChunk, end - first);
      GatherRows<true>(a_, begin, width, first, count, moves, shared_.tiles);
      __syncthreads();
      SolveTriangle<kDepth>(kUnitLower, count, shared_.tiles);
      __syncthreads();
      StoreSolved(shared_.tiles, a_, begin, width, first, count);
      const MatrixView<T> rest = {&a_(below, first), rows_ - below, count, a_.ld};
      SubtractProduct<kDepth>(l, width, shared_.tiles, rest);
      __syncthreads();
    }
  }

 private:
  static constexpr int kPanel = MemberBlocking<T>::kPanel;
  static constexpr int kBlock = MemberBlocking<T>::kBlock;
  static constexpr int kChunk = MemberBlocking<T>::kChunk;
  static_assert(kThreads >= kChunk && kBlock <= kWarp);

  __device__ int FactorPanel(int begin, int width) {
    const MatrixView<T> panel = {&a_(begin, begin), rows_ - begin, width, a_.ld};
    const int rows = rows_ - begin;
    int info;
    if (kInRegisters && rows <= kThreads) {
      info = FactorPanel<1>(panel, begin);
    } else if (kInRegisters && rows <= Shared::kMaxRows) {
      info = FactorPanel<Shared::kRows>(panel, begin);
    } else {
      info = ColumnPanel<T, kThreads>(panel, shared_.slots)
                 .Factor(begin, ipiv_ + begin, least_.From(begin));
    }
    __syncthreads();
    return info;
  }
  template <int kRows>
  __device__ int FactorPanel(const MatrixView<T>& view, int begin) {
    MemberPanel<T, kThreads, kRows> panel(view, shared_.slots);
    const int info = panel.Factor(begin, ipiv_ + begin, least_.From(begin));
    panel.Store();
    return info;
  }

  // moves := the interchanges of rows [begin, begin + count). Requires a barrier before the call;
  // ends with one.
  __device__ void Trace(int begin, int count) {
    if (threadIdx.x < kWarp) shared_.moves[Lane()] = cuda::Trace(ipiv_, 0, begin, begin + count);
    __syncthreads();
  }

  // Applies to the columns of every block the interchanges of all later blocks.
  __device__ void ExchangeLeft(int diagonal) {
    int from[Shared::kRows];  // current position of the rows that move to this thread's rows
    for (int r = 0; r < Shared::kRows; ++r) from[r] = Row(r);
    const int last = (diagonal - 1) / kBlock * kBlock;
    for (int begin = last; begin > 0; begin -= kBlock) {
      Trace(begin, min(kBlock, diagonal - begin));
      Compose(shared_.moves[Lane()], from);
      GatherColumns(begin - kBlock, begin, from);
    }
  }

  // Replaces each row from[r] by the row that `moves` moves there.
  __device__ void Compose(const Moves& moves, int (&from)[Shared::kRows]) {
    for (int r = 0; r < Shared::kRows; ++r) shared_.source[Row(r)] = Row(r);
    __syncthreads();
    if (threadIdx.x < kWarp) {
      if (moves.row_moves) shared_.source[moves.row] = moves.row_from;
      if (moves.other_moves) shared_.source[moves.other] = moves.other_from;
    }
    __syncthreads();
    for (int r = 0; r < Shared::kRows; ++r) from[r] = shared_.source[from[r]];
  }

  // Row i of columns [begin, end) := row `from`, for this thread's rows i.
  __device__ void GatherColumns(int begin, int end, const int (&from)[Shared::kRows]) {
    constexpr int kColumnsPerPass = kPanel / 2;
    static_assert(kBlock % kColumnsPerPass == 0);
    for (int first = begin; first < end; first += kColumnsPerPass) {
      T values[kColumnsPerPass][Shared::kRows];
#pragma unroll
      for (int c = 0; c < kColumnsPerPass; ++c) {
#pragma unroll
        for (int r = 0; r < Shared::kRows; ++r) {
          if (from[r] != Row(r)) values[c][r] = a_(from[r], first + c);
        }
      }
      __syncthreads();
#pragma unroll
      for (int c = 0; c < kColumnsPerPass; ++c) {
#pragma unroll
        for (int r = 0; r < Shared::kRows; ++r) {
          if (from[r] != Row(r)) a_(Row(r), first + c) = values[c][r];
        }
      }
    }
  }

  static __device__ int Lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  static __device__ int Row(int r) { return static_cast<int>(threadIdx.x) + r * kThreads; }

  const MatrixView<T>& a_;
  const int rows_;
  const int cols_;
  int64_t* const ipiv_;
  const MinPivots<T> least_;
  Shared& shared_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_MEMBER_LU_CUH_
