// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/irregular_batches/gpu_irr_panels.h"

#include "kernels/cuda/irr_lu/lu_kernels.cuh"

namespace crout {

cudaError_t LaunchGetf2ByColumns(const cuda::IrrLuBatch<double>& batch,
                                 const cuda::IrrMembers& members, cudaStream_t stream) {
  constexpr int kThreads = 512;  // same value as in LaunchIrrGetf2
  if (members.count == 0) return cudaSuccess;
  return cuda::LaunchDependent(cuda::Getf2Kernel<double, kThreads, /*kInRegisters=*/false>,
                               dim3(static_cast<unsigned>(members.count)), kThreads, 0, false,
                               stream, batch, 0, members.order);
}

}  // namespace crout
