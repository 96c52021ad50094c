// SPDX-License-Identifier: Apache-2.0

// The blocks that factor one panel, and their synchronization, once per column.
#ifndef CROUT_KERNELS_CUDA_CROUT_PCM_PANEL_TEAM_CUH_
#define CROUT_KERNELS_CUDA_CROUT_PCM_PANEL_TEAM_CUH_

#include <cooperative_groups.h>

#include "kernels/cuda/crout/pcm_panel.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {

// A block's candidate for the pivot. 16 bytes, so that one load reads it.
struct alignas(16) PanelCandidate {
  unsigned long long best_key;  // bits of the candidate's |x| (Abs1)
  int best_position;            // row of the candidate, counted from the panel's first row
  int diagonal_position;        // row in the pivot's place, if this block holds it
};

// The data that a block publishes before a step. Rows begin at the step's column.
template <class T, int kWidth>
struct alignas(16) PanelSlot {
  PanelCandidate offer;
  T best_row[kWidth];
  T diagonal_row[kWidth];
  unsigned epoch;  // GridTeam: the epoch that was published last
};

// Every team has two slots per block, used alternately. A block writes for step k + 2 only after
// all blocks have published step k + 1, and so have read step k. Every thread calls Sync().
// Afterwards, warp 0 of each block sees everything that the blocks wrote to their slots of that
// parity before.

// The blocks of one cooperative grid; they exchange slots through device memory.
template <class Slot>
class GridTeam {
 public:
  // `slots` has 2 * gridDim.x elements, with epochs below any that will be used.
  __device__ explicit GridTeam(Slot* slots) : slots_(slots) {}

  __device__ int size() const { return static_cast<int>(gridDim.x); }
  __device__ Slot& Own(int parity) { return At(parity, static_cast<int>(blockIdx.x)); }
  __device__ const Slot& SlotOf(int parity, int block) { return At(parity, block); }

  // `epoch` increases from call to call, across all panels of a factorization.
  __device__ void Sync(int parity, unsigned epoch) {
    __syncthreads();
    if (threadIdx.x >= kWarp) return;
    if (threadIdx.x == 0) Release(&Own(parity).epoch, epoch);
    for (int block = threadIdx.x; block < size(); block += kWarp) {
      while (Acquire(&At(parity, block).epoch) != epoch) {
      }
    }
    __syncwarp();
  }

  // Every thread calls it after the last Sync().
  __device__ void Leave() {}

 private:
  __device__ Slot& At(int parity, int block) { return slots_[2 * block + parity]; }
  __device__ static void Release(unsigned* word, unsigned value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
  }
  __device__ static unsigned Acquire(const unsigned* word) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
  }

  Slot* const slots_;
};

// The blocks of one cluster; they read each other's shared memory, at a fraction of the latency.
template <class Slot>
class ClusterTeam {
 public:
  // `slots` has two elements in this block's shared memory.
  __device__ explicit ClusterTeam(Slot* slots) : slots_(slots) {}

  __device__ int size() const { return static_cast<int>(gridDim.x); }
  __device__ Slot& Own(int parity) { return slots_[parity]; }

#if __CUDA_ARCH__ >= 900
  __device__ const Slot& SlotOf(int parity, int block) {
    return *cooperative_groups::this_cluster().map_shared_rank(&slots_[parity], block);
  }
  __device__ void Sync(int, unsigned) { cooperative_groups::this_cluster().sync(); }
  // Waits, because other blocks may still read this block's slots.
  __device__ void Leave() { cooperative_groups::this_cluster().sync(); }
#else  // clusters are never launched on these architectures
  __device__ const Slot& SlotOf(int parity, int) { return slots_[parity]; }
  __device__ void Sync(int, unsigned) { __trap(); }
  __device__ void Leave() { __trap(); }
#endif

 private:
  Slot* const slots_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_PCM_PANEL_TEAM_CUH_
