// SPDX-License-Identifier: Apache-2.0

// Fronts that one block of threads, or one warp, assembles and factors in shared memory.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_SMALL_FRONT_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_SMALL_FRONT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/cuda/multifrontal/front.h"

namespace crout::cuda {

// The largest size d1 + d2 of small fronts. A warp handles those up to kTinyFront. Batches of small
// fronts are the last ones of their level.
inline constexpr int32_t kSmallFront = 64;
inline constexpr int32_t kTinyFront = 32;
constexpr bool IsSmallFront(int64_t size) { return size <= kSmallFront; }
// complex128 fronts are too large for shared memory.
template <class T>
inline constexpr bool kHasSmallFronts = sizeof(T) <= 8;

// The batches of small fronts that one kernel handles, at most two per level. Passed by value as a
// kernel parameter.
class SmallFronts {
 public:
  static constexpr int kMaxBatches = 64;

  struct Batch {
    int32_t first_block;  // index of its first thread block in the kernel
    int32_t begin;        // index in the order
    int32_t end;
    bool tiny;
    // True if these fronts wait for their children. All children are then in earlier batches of the
    // same kernel.
    bool awaits;
  };

  // Adds a batch. Batches are added in the order of the levels from the leaves, at most
  // kMaxBatches. `size`: of the largest front.
  void Add(int32_t begin, int32_t end, int32_t size, bool awaits);

  // constexpr, so that device code may call these functions.
  constexpr int count() const { return count_; }
  constexpr int32_t blocks() const { return blocks_; }
  constexpr const Batch& operator[](int i) const { return batch_[i]; }

 private:
  int32_t count_ = 0;
  int32_t blocks_ = 0;
  Batch batch_[kMaxBatches] = {};
};

// Counters through which fronts wait for others in the same kernel. In device memory, zero before
// the kernel.
struct FrontArrivals {
  int32_t* children = nullptr;  // by front: finished children; null: no front waits
  int32_t* block = nullptr;     // number of this kernel's blocks that have started
};

// Enqueues the assembly and factorization of `fronts`, which are ranges of `order` in device
// memory. Adds the children's contributions, factors F11 with interchanges within F11 and pivots
// perturbed to `least`, and computes U12, L21 and F22. On entry, the fronts' parts of the factor
// hold A's entries. ipiv is indexed by position and 1-based within a front. A front's bits do not
// depend on the other fronts of the kernel.
template <class T>
cudaError_t LaunchSmallFronts(const FrontTree& tree, const int32_t* order,
                              const SmallFronts& fronts, T* factor, T* contributions, int64_t* ipiv,
                              const MinPivots<T>& least, const FrontArrivals& arrivals,
                              cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_SMALL_FRONT_H_
