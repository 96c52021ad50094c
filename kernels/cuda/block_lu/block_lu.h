// SPDX-License-Identifier: Apache-2.0

// Blocked LU without pivoting.
#ifndef CROUT_KERNELS_CUDA_BLOCK_LU_BLOCK_LU_H_
#define CROUT_KERNELS_CUDA_BLOCK_LU_BLOCK_LU_H_

#include <memory>

#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/lu_algorithm.h"

namespace crout::cuda {

// `block_lu`: A = LU with the unit diagonal in L, by tiles in shared memory (after the blocked
// method of Rodrigues and Estevao, 2023) under the recursion of recursive_lu.h. For matrices that
// need no pivoting, such as diagonally dominant ones. A pivot that is zero, below the type's normal
// range, or NaN is refused: info is its 1-based index, and the method stops there. The columns to
// its left then hold L and U; the rest of the matrix holds the partially eliminated values.
std::unique_ptr<LuAlgorithm> MakeBlockLu(DeviceCore& core);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_BLOCK_LU_BLOCK_LU_H_
