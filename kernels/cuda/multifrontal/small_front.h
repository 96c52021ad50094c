// Fronts that one block of threads, or one warp, assembles and factors in shared memory.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_SMALL_FRONT_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_SMALL_FRONT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/cuda/multifrontal/front.h"

namespace crout::cuda {

// The largest, d1 + d2; up to the least of all a warp does. Batches of these alone are the last of
// their level.
inline constexpr int32_t kSmallFront = 64;
inline constexpr int32_t kTinyFront = 32;
constexpr bool IsSmallFront(int64_t size) { return size <= kSmallFront; }
// Of complex128 they are too large for shared memory.
template <class T>
inline constexpr bool kHasSmallFronts = sizeof(T) <= 8;

// The batches of small fronts that one kernel does, at most two for each level. By value: a
// kernel's parameter.
class SmallFronts {
 public:
  static constexpr int kMostBatches = 64;

  struct Batch {
    int32_t first_block;  // of threads
    int32_t begin;        // fronts: of the order
    int32_t end;
    bool tiny;
    // Whether children of these fronts are in a batch before it, and are waited for: all of them
    // are, then.
    bool awaits;
  };

  // One more, in the order of the levels from the leaves; there is room. size: of the largest.
  void Add(int32_t begin, int32_t end, int32_t size, bool awaits);

  // constexpr, so that device code may call them.
  constexpr int count() const { return count_; }
  constexpr int32_t blocks() const { return blocks_; }
  constexpr const Batch& operator[](int i) const { return batch_[i]; }

 private:
  int32_t count_ = 0;
  int32_t blocks_ = 0;
  Batch batch_[kMostBatches] = {};
};

// By which fronts wait for others in the same kernel; in device memory, zero before it.
struct FrontArrivals {
  int32_t* children = nullptr;  // by front; null: none waits
  int32_t* block = nullptr;     // of the kernel's own: how many blocks have begun
};

// Enqueues all that becomes of these fronts, of `order` in device memory: what their children left
// is added, F11 is factored, with interchanges in F11 and pivots raised to `least`, U12, L21 and
// F22 follow. On entry their parts of the factor hold A's entries; ipiv is by position, 1-based in
// a front. What a front comes to does not depend on which others the kernel does, to the bit.
template <class T>
cudaError_t LaunchSmallFronts(const FrontTree& tree, const int32_t* order,
                              const SmallFronts& fronts, T* factor, T* contributions, int64_t* ipiv,
                              const LeastPivots<T>& least, const FrontArrivals& arrivals,
                              cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_SMALL_FRONT_H_
