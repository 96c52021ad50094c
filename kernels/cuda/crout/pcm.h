// Parallel Crout's method, direct.
#ifndef CROUT_KERNELS_CUDA_CROUT_PCM_H_
#define CROUT_KERNELS_CUDA_CROUT_PCM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/lu_algorithm.h"

namespace crout::cuda {

// `pcm` (never pivots) and `pcmpp` (full partial pivoting unless a parameter says otherwise), after
// Cejka (2023): column k of L in parallel, arg-max, swap, row k of U in parallel. There every
// column reads all earlier ones; here so do the columns of a panel only, and the rest is matrix
// products (recursive_lu.h). LuParameters::block_size chooses the tile of the panel that one thread
// block works on: that many columns (8, 16, 32; 32 by default; of complex128 at most 16), one row
// in each of its threads.
absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakePcm(DeviceCore& core);
absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakePcmpp(DeviceCore& core);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_PCM_H_
