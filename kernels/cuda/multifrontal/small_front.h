// Fronts that one block of threads, or one warp, assembles and factors in shared memory.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_SMALL_FRONT_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_SMALL_FRONT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/cuda/multifrontal/front.h"

namespace crout::cuda {

// The largest: d1 + d2, and d1; up to the least of all a warp does. Batches of these alone are the
// last of their level.
inline constexpr int32_t kSmallFront = 64;
inline constexpr int32_t kTinyFront = 32;
inline constexpr int32_t kSmallFrontColumns = 32;
constexpr bool IsSmallFront(int64_t d1, int64_t size) {
  return d1 <= kSmallFrontColumns && size <= kSmallFront;
}
// Of complex128 they are too large for shared memory.
template <class T>
inline constexpr bool kHasSmallFronts = sizeof(T) <= 8;

// Enqueues all that becomes of the set's fronts, which are small: what their children left is
// added, F11 is factored, with interchanges in F11 and pivots raised to `least`, U12, L21 and F22
// follow. On entry their parts of the factor hold A's entries; ipiv is by position, 1-based in a
// front.
template <class T>
cudaError_t LaunchSmallFronts(const FrontTree& tree, const FrontSet& set, T* factor,
                              T* contributions, int64_t* ipiv, const LeastPivots<T>& least,
                              cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_SMALL_FRONT_H_
