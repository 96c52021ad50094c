// SPDX-License-Identifier: Apache-2.0

// The kernel that computes irr_lu's backward errors. C++17: kernels include it.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_ERROR_KERNELS_H_
#define CROUT_KERNELS_CUDA_IRR_LU_ERROR_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/batch_member.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// Systems in device memory: member i of A, and of X and B, which share one layout.
template <class T>
struct BatchSystems {
  const T* a = nullptr;
  const BatchMember* a_members = nullptr;
  const T* x = nullptr;
  const T* b = nullptr;
  const BatchMember* rhs_members = nullptr;
};

// Enqueues errors[i] (see BatchLu::BackwardErrors) for all members, one thread block each.
template <class T>
cudaError_t LaunchBackwardErrors(Op op, const BatchSystems<T>& systems, int64_t members,
                                 double* errors, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_ERROR_KERNELS_H_
