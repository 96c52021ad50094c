// SPDX-License-Identifier: Apache-2.0

// Parallel Crout's method, direct.
#ifndef CROUT_KERNELS_CUDA_CROUT_PCM_H_
#define CROUT_KERNELS_CUDA_CROUT_PCM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/lu_algorithm.h"

namespace crout::cuda {

// `pcm` (never pivots) and `pcmpp` (partial pivoting unless a parameter selects another rule),
// after Cejka (2023): column k of L in parallel, arg-max, swap, row k of U in parallel. In the
// published method every column reads all earlier ones. Here a column reads only the earlier
// columns of its panel, and the rest is matrix products (recursive_lu.h). LuParameters::block_size
// selects the tile of the panel that one thread block handles: that many columns (8, 16, 32;
// default 32; complex128 at most 16), and one row per thread.
absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakePcm(DeviceCore& core);
absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakePcmpp(DeviceCore& core);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_PCM_H_
