// SPDX-License-Identifier: Apache-2.0

// Device code of a panel that is factored by a cluster.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_PANEL_IN_REGISTERS_CUH_
#define CROUT_KERNELS_CUDA_CROUT_LU_PANEL_IN_REGISTERS_CUH_

#include "kernels/cuda/crout_lu/lu_panel_variants.h"
#include "kernels/cuda/crout_lu/pivot_search.cuh"
#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/reciprocal.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {

// A candidate for the pivot, with its row.
template <class T, int kWidth>
struct alignas(16) PivotRow {
  T row[kWidth];   // elements from the step's column on
  T reciprocal;    // reciprocal of the pivot; this and `origin` directly follow a narrower row
  int32_t origin;  // position of the row: k, or ~k if there is no reciprocal, or kZero
};

// Every thread holds kRows rows, kThreads apart. With one row, the steps are unrolled. With several
// rows, unrolled steps would overflow the instruction cache and take longer to fetch than to
// execute, so the steps form a loop. Registers cannot be indexed, so the loop moves the columns
// instead: an update writes each column one place to the left, and a finished column goes to the
// end of the window. After kGroup steps the finished columns leave the window.
template <class T, int kWidth, int kRows, int kThreads, bool kCluster>
class PanelInRegisters {
 public:
  static constexpr int kWarps = kThreads / kWarp;
  using Row = PivotRow<T, kWidth>;

  // Double-buffered by the parity of the step. A block writes for step k + 2 only after all blocks
  // have sent their rows of step k + 1, and so have read those of step k.
  struct Shared {
    uint64_t keys[2][kWarps < 4 ? 4 : kWarps];
    Row rows[2][kCluster ? kMaxClusterBlocks : 1];  // rows received from every block
    Row own[2];                                     // the row that this block sends
    uint64_t barriers[2];
  };

  __device__ PanelInRegisters(const LuPanel<T>& panel, Shared& shared)
      : panel_(panel),
        columns_(__ballot_sync(kAllLanes, Lane() < panel.a.cols)),
        warp_(static_cast<int>(threadIdx.x) / kWarp),
        rows_(SharedAddress(shared.rows)),
        own_(SharedAddress(shared.own)),
        keys_(SharedAddress(shared.keys)),
        barriers_(SharedAddress(shared.barriers)),
        last_(rows_) {}

  __device__ void Run() {
    Connect();
    AwaitPreviousKernel();
    ReleaseDependentKernel();
    const int halt = panel_.control->halt;  // set between kernels: all blocks read the same value
    const bool keeper = blockIdx.x == 0 && threadIdx.x == 0;
    // The load starts here; its value is used at the end.
    const uint32_t stop = keeper ? *panel_.host.stop : 0;
    Load();  // while the load of `halt` is in flight
    if (halt != 0) return StoreIdentityPivots();
    if (keeper && panel_.host.columns != nullptr) *panel_.host.columns = panel_.begin;
    Factor<kWidth>();
    Store();
    if (blockIdx.x == 0 && threadIdx.x < kWarp && Lane() < panel_.a.cols) {
      panel_.ipiv[panel_.begin + threadIdx.x] = panel_.begin + pivot_ + 1;
    }
    if (!keeper) return;
    if (first_zero_ != 0 && panel_.control->info == 0) {
      panel_.control->info = static_cast<int>(panel_.begin) + first_zero_;
    }
    if (stop != 0) Halt(panel_.control);
  }

 private:
  static constexpr int kChunk = SharedChunk<T>::kCount;
  static constexpr bool kUnrolled = kRows == 1;
  static constexpr int kGroup = kUnrolled ? kWidth : 4;
  static constexpr int32_t kZero = INT32_MIN;  // marks a pivot that is zero
  // Pieces of 16 bytes after a row: the reciprocal and the row's origin.
  static constexpr int kTailPieces = sizeof(T) > sizeof(double) ? 2 : 1;
  static_assert(sizeof(Row) == (kWidth / kChunk + kTailPieces) * 16);

  // Place(k): place of step k's column in the window. FirstPending(k): the first column that step
  // k has not updated yet when step k + 1 begins.
  static __device__ int Place(int k) { return kUnrolled ? k : 0; }
  static __device__ int FirstPending(int k) { return Place(k) + 2; }

  static __device__ int Lane() { return threadIdx.x % kWarp; }
  static __device__ bool Holds(unsigned columns, int j) { return (columns >> j & 1) != 0; }

  // Sets identity pivots for a panel that is not factored: kernels enqueued behind it may still use
  // them as row indices.
  __device__ void StoreIdentityPivots() {
    if (blockIdx.x != 0 || threadIdx.x >= kWarp || Lane() >= panel_.a.cols) return;
    panel_.ipiv[panel_.begin + threadIdx.x] = panel_.begin + threadIdx.x + 1;
  }

  __device__ void Connect() {
    if constexpr (kCluster) {
      blocks_ = static_cast<int>(gridDim.x);
      log_blocks_ = __ffs(blocks_) - 1;
      if (threadIdx.x == 0) {
        Barrier(0).Start();
        Barrier(1).Start();
        TransactionBarrier::FenceInit();
      }
      const unsigned to = Lane() & (blocks_ - 1);
      share_ = static_cast<int>(threadIdx.x) >> log_blocks_;
      remote_row_ = ClusterAddress(rows_ + blockIdx.x * uint32_t{sizeof(Row)}, to) + share_ * 16;
      remote_barriers_ = ClusterAddress(barriers_, to);
      SyncCluster();
    }
  }

  __device__ int64_t IndexOf(int r) const {
    return (static_cast<int64_t>(blockIdx.x) * kRows + r) * kThreads + threadIdx.x;
  }

  __device__ void Load() {
    const MatrixView<T>& a = panel_.a;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t i = IndexOf(r);
      const bool exists = i < a.rows;
      const unsigned columns = exists ? columns_ : 0;
      position_[r] = exists ? static_cast<int>(i) : -1;
      const T* from = a.data + i;
#pragma unroll
      for (int j = 0; j < kWidth; ++j, from += a.ld)
        value_[r][j] = Holds(columns, j) ? *from : T{0};
    }
    pivot_ = Lane();
  }

  // All blocks have read their rows: every row was needed before the last exchange. The windows of
  // the last steps come first.
  __device__ void Store() {
    const MatrixView<T>& a = panel_.a;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const unsigned columns = position_[r] >= 0 ? columns_ : 0;
#pragma unroll
      for (int group = 0; group < kWidth; group += kGroup) {
        T* to = a.data + position_[r] + group * a.ld;
#pragma unroll
        for (int j = 0; j < kGroup; ++j, to += a.ld) {
          if (Holds(columns, group + j)) *to = value_[r][kWidth - kGroup - group + j];
        }
      }
    }
  }

  // Applies the last step's update to the columns in places [from, to) of the window.
  template <int kWindow>
  __device__ void Update(int from, int to) {
#pragma unroll
    for (int c = 0; c < kWindow; c += kChunk) {
      if (c + kChunk <= from || c >= to) continue;
      T u[kChunk];
      SharedChunk<T>::Load(last_ + c * uint32_t{sizeof(T)}, u);
#pragma unroll
      for (int i = 0; i < kChunk; ++i) {
        if (c + i < from || c + i >= to) continue;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          value_[r][c + i - (kUnrolled ? 0 : 1)] = MinusProduct(value_[r][c + i], factor_[r], u[i]);
        }
      }
    }
  }
  // The update of step k - 1 runs in two parts during the search for step k's pivot. Its first two
  // columns were updated at once. Middle() is the border between the parts.
  template <int kWindow>
  static __device__ int Middle(int k) {
    const int middle = (FirstPending(k - 1) + kWindow) / 2 / kChunk * kChunk;
    return middle < FirstPending(k - 1) ? FirstPending(k - 1) : middle;
  }
  template <int kWindow>
  __device__ void StartCatchUp(int k) {
    if (k % kGroup != 0) Update<kWindow>(FirstPending(k - 1), Middle<kWindow>(k));
  }
  template <int kWindow>
  __device__ void EndCatchUp(int k) {
    if (k % kGroup != 0) EndUpdate<kWindow>(Middle<kWindow>(k));
  }
  template <int kWindow>
  __device__ void EndUpdate(int from) {
    Update<kWindow>(from, kWindow);
    if constexpr (!kUnrolled) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) value_[r][kWindow - 1] = finished_[r];
    }
  }

  // Returns whether this warp's key is the largest. Calls `meanwhile` while the keys are being
  // loaded.
  template <class F>
  __device__ bool IsLargestWarp(uint32_t keys, F&& meanwhile) const {
    if constexpr (kWarps <= 4) {
      uint64_t key[4];
#pragma unroll
      for (int w = 0; w < 4; ++w) key[w] = w < kWarps ? LoadShared64(keys + w * 8) : 0;
      meanwhile();
      const int a = key[1] > key[0] ? 1 : 0;
      const int b = key[3] > key[2] ? 3 : 2;
      return ((b == 3 ? key[3] : key[2]) > (a == 1 ? key[1] : key[0]) ? b : a) == warp_;
    } else {
      const uint64_t key = Lane() < kWarps ? LoadShared64(keys + Lane() * 8) : 0;
      meanwhile();
      const unsigned largest = LargestKey(key);
      return (largest >> warp_ & 1) != 0;
    }
  }

  template <int kWindow>
  __device__ void StoreRow(uint32_t to, int r, int k, uint64_t key, T candidate, T reciprocal) {
    const int finished = kUnrolled ? 0 : k % kGroup;  // at the end of the window
#pragma unroll
    for (int s = 0; s < kRows; ++s) {
      if (s != r) continue;
#pragma unroll
      for (int c = 0; c < kWindow; c += kChunk) {
        if (c + kChunk <= Place(k)) continue;
        T x[kChunk];
#pragma unroll
        for (int i = 0; i < kChunk; ++i) {
          // A finished row is not a candidate, whatever its elements.
          const bool none = c + i == Place(k)
                                ? key == 0
                                : c + i > kWindow - kGroup && c + i >= kWindow - finished;
          x[i] = none ? T{0} : value_[s][c + i];
        }
        SharedChunk<T>::Store(to + c * uint32_t{sizeof(T)}, x);
      }
      const uint32_t end = to + kWindow * uint32_t{sizeof(T)};
      const bool normal = HasReciprocal(candidate);
      const int32_t origin = key == 0 ? kZero : normal ? position_[s] : ~position_[s];
      StoreTail(end, reciprocal, origin);
    }
  }

  // Stores the data that follow a row: reciprocal and origin.
  static __device__ void StoreTail(uint32_t to, float reciprocal, int32_t origin) {
    const uint64_t high = static_cast<uint64_t>(static_cast<uint32_t>(origin)) << 32;
    StoreShared64(to, high | __float_as_uint(reciprocal));
  }
  static __device__ void StoreTail(uint32_t to, double reciprocal, int32_t origin) {
    StoreShared64(to, __double_as_longlong(reciprocal));
    StoreShared64(to + 8, static_cast<uint32_t>(origin));
  }
  template <class Part>
  static __device__ void StoreTail(uint32_t to, const Complex<Part>& reciprocal, int32_t origin) {
    if constexpr (sizeof(Part) == 4) {
      const uint64_t high = static_cast<uint64_t>(__float_as_uint(reciprocal.im)) << 32;
      StoreShared64(to, high | __float_as_uint(reciprocal.re));
    } else {
      SharedChunk<T>::Store(to, &reciprocal);
    }
    StoreShared64(to + sizeof(T), static_cast<uint32_t>(origin));
  }
  static __device__ void LoadTail(uint32_t from, float& reciprocal, int32_t& origin) {
    const uint64_t both = LoadShared64(from);
    reciprocal = __uint_as_float(static_cast<uint32_t>(both));
    origin = static_cast<int32_t>(both >> 32);
  }
  static __device__ void LoadTail(uint32_t from, double& reciprocal, int32_t& origin) {
    reciprocal = __longlong_as_double(static_cast<long long>(LoadShared64(from)));
    origin = static_cast<int32_t>(LoadShared64(from + 8));
  }
  template <class Part>
  static __device__ void LoadTail(uint32_t from, Complex<Part>& reciprocal, int32_t& origin) {
    if constexpr (sizeof(Part) == 4) {
      const uint64_t both = LoadShared64(from);
      reciprocal = {__uint_as_float(static_cast<uint32_t>(both)),
                    __uint_as_float(static_cast<uint32_t>(both >> 32))};
    } else {
      SharedChunk<T>::Load(from, &reciprocal);
    }
    origin = static_cast<int32_t>(LoadShared64(from + sizeof(T)));
  }

  __device__ TransactionBarrier Barrier(uint32_t parity) const {
    return TransactionBarrier(barriers_ + parity * 8);
  }

  // In step k a row is sent from its 16-byte piece FirstPiece(k) on.
  static __device__ int FirstPiece(int k) { return Place(k) / kChunk; }
  template <int kWindow>
  static __device__ int Pieces(int k) {
    return kWindow / kChunk + kTailPieces - FirstPiece(k);
  }

  // Copies the row to all blocks. All warps share the copies, because one warp alone would take
  // longer than the barrier does.
  template <int kWindow>
  __device__ void Broadcast(int k) {
    const uint32_t parity = k % 2;
    const uint32_t from = own_ + parity * uint32_t{sizeof(Row)} + (share_ + FirstPiece(k)) * 16;
    const uint32_t to =
        remote_row_ + parity * (kMaxClusterBlocks * uint32_t{sizeof(Row)}) + FirstPiece(k) * 16;
    const int stride = kThreads >> log_blocks_;  // copies at a time to each block
    __syncthreads();
    const auto copy = [&](int pieces) {
      CopyToCluster(from + pieces * 16, to + pieces * 16, remote_barriers_ + parity * 8);
    };
    if (share_ < Pieces<kWindow>(k)) copy(0);
    for (int done = stride; done + share_ < Pieces<kWindow>(k); done += stride) copy(done);
  }

  // Waits for the rows of step k from all blocks. Returns the block with the largest candidate.
  __device__ int LargestBlock(uint32_t rows, int k) {
    Barrier(k % 2).Wait(k / 2 % 2);
    uint64_t key = 0;
    if (Lane() < blocks_) {
      T x[kChunk];
      SharedChunk<T>::Load(rows + Lane() * uint32_t{sizeof(Row)} + FirstPiece(k) * 16, x);
      key = KeyOf(x[Place(k) % kChunk]);
    }
    return 31 - __clz(static_cast<int>(LargestKey(key)));
  }

  // Factors the last kWindow columns.
  template <int kWindow>
  __device__ void Factor() {
    if constexpr (kWindow > 0) {
      constexpr int kFirst = kWidth - kWindow;
#pragma unroll(kUnrolled ? kGroup : 1)
      for (int k = kFirst; k < kFirst + kGroup; ++k) {
        if (Holds(columns_, k)) {
          Step<kWindow>(k);
        } else if constexpr (kUnrolled) {
          return;
        } else {
          Skip<kWindow>(k);
        }
      }
      if constexpr (!kUnrolled) EndUpdate<kWindow>(FirstPending(0));
      Factor<kWindow - kGroup>();
    }
  }

  template <int kWindow>
  __device__ void Step(int k) {
    const uint32_t parity = k % 2;
    // The candidate of this thread, then that of its warp.
    uint64_t key = 0;
    int best = 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const uint64_t other = position_[r] >= k ? KeyOf(value_[r][Place(k)]) : 0;
      if (r > 0 && other <= key) continue;
      key = other;
      best = r;
    }
    const bool leads = (LargestKey(key) >> Lane() & 1) != 0;
    const uint32_t keys = keys_ + parity * uint32_t{sizeof(Shared::keys[0])};
    if (leads) StoreShared64(keys + warp_ * 8, key);
    if constexpr (kCluster) {
      if (threadIdx.x == 0) Barrier(parity).ExpectBytes(blocks_ * Pieces<kWindow>(k) * 16);
    }
    StartCatchUp<kWindow>(k);
    T candidate = value_[0][Place(k)];
#pragma unroll
    for (int r = 1; r < kRows; ++r) candidate = r == best ? value_[r][Place(k)] : candidate;
    const T reciprocal = Reciprocal(candidate);
    __syncthreads();
    uint32_t row = rows_ + parity * uint32_t{sizeof(Shared::rows[0])};
    const uint32_t own = kCluster ? own_ + parity * uint32_t{sizeof(Row)} : row;
    const bool wins = IsLargestWarp(keys, [&] { EndCatchUp<kWindow>(k); });
    if (wins && leads) StoreRow<kWindow>(own, best, k, key, candidate, reciprocal);
    if constexpr (kCluster) {
      Broadcast<kWindow>(k);
      row += LargestBlock(row, k) * uint32_t{sizeof(Row)};
    } else {
      __syncthreads();
    }
    last_ = row;
    Eliminate<kWindow>(row, k);
  }

  // A step beyond the panel's last column: only moves the finished columns through the window.
  template <int kWindow>
  __device__ void Skip(int k) {
    StartCatchUp<kWindow>(k);
    EndCatchUp<kWindow>(k);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      factor_[r] = 0;
      finished_[r] = value_[r][0];
      value_[r][0] = value_[r][1];
    }
  }

  // Computes step k's column of L, and updates the next column for its pivot search.
  template <int kWindow>
  __device__ void Eliminate(uint32_t row, int k) {
    const int place = Place(k);
    const bool last = place + 1 == kWindow;  // in a loop, finished columns follow in the window
    T pair[2 * kChunk];
    SharedChunk<T>::Load(row + place / kChunk * 16, pair);
    if (place % kChunk + 1 == kChunk && !last) {
      SharedChunk<T>::Load(row + (place / kChunk + 1) * 16, pair + kChunk);
    }
    const T pivot = pair[place % kChunk];
    const uint32_t end = row + kWindow * uint32_t{sizeof(T)};
    T reciprocal;
    int32_t origin;
    LoadTail(end, reciprocal, origin);
    T l[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) l[r] = value_[r][place] * reciprocal;
    if (__builtin_expect(origin < 0, 0)) {
      const bool zero = origin == kZero;
      if (zero && first_zero_ == 0) first_zero_ = k + 1;
      origin = zero ? k : ~origin;
#pragma unroll
      for (int r = 0; r < kRows; ++r) l[r] = zero ? T{0} : Divide(value_[r][place], pivot);
    }
    if (Lane() == k) pivot_ = origin;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      int& position = position_[r];
      const bool open = position >= k && position != origin;
      factor_[r] = open ? l[r] : T{0};
      T& finished = kUnrolled ? value_[r][place] : finished_[r];
      finished = open ? l[r] : value_[r][place];
      if (!last) {
        const T next = MinusProduct(value_[r][place + 1], factor_[r], pair[place % kChunk + 1]);
        value_[r][kUnrolled ? place + 1 : 0] = next;
      }
      position = position == origin ? k : position == k ? origin : position;
    }
  }

  const LuPanel<T>& panel_;
  // Bit j: the panel has column j. Kept in a register, because each step would wait for a load of
  // the kernel parameter.
  const unsigned columns_;
  const int warp_;
  const uint32_t rows_;
  const uint32_t own_;
  const uint32_t keys_;
  const uint32_t barriers_;
  uint32_t last_;            // shared address of the last pivot's row
  int share_ = 0;            // the first 16-byte piece of a row that this thread copies
  uint32_t remote_row_ = 0;  // shared address of that piece in the block that receives it
  uint32_t remote_barriers_ = 0;
  int blocks_ = 1;  // a power of two
  int log_blocks_ = 0;
  T value_[kRows][kWidth];
  T factor_[kRows];      // multipliers of the last pivot's row
  T finished_[kRows];    // the last step's column, until it moves to the window's end
  int position_[kRows];  // the row's current position, from the panel's first row; -1: no row
  int pivot_ = 0;        // lane k: the row that was interchanged with row k
  int first_zero_ = 0;   // 1-based column of the first zero pivot
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_PANEL_IN_REGISTERS_CUH_
