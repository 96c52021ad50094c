// SPDX-License-Identifier: Apache-2.0

// State that the kernels of one blocked factorization share in device memory. It lets the
// factorization end early without the host: later kernels check it.
#ifndef CROUT_KERNELS_CUDA_BLOCKED_LU_CONTROL_H_
#define CROUT_KERNELS_CUDA_BLOCKED_LU_CONTROL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace crout::cuda {

template <class T>
struct LuControl {
  // The scalars of the matrix products, which cuBLAS reads here. A halt clears `minus_one`, so that
  // products enqueued behind it do not modify the matrix.
  T minus_one;
  T one;
  int info;  // LAPACK's info, for the part that has run
  int halt;  // non-zero: kernels return at once
};

// Enqueues the initialization of `control`.
template <class T>
cudaError_t LaunchStartLu(LuControl<T>* control, cudaStream_t stream);

#ifdef __CUDACC__
// Ends the factorization early. Called by one thread at the end of a kernel. Kernels that run at
// the same time may see the halt at any moment. Unless they call BlockHalted(), some threads of a
// block may see it and others not. The results of such kernels do not matter, because the matrix is
// abandoned.
template <class T>
__device__ inline void Halt(LuControl<T>* control) {
  control->halt = 1;
  control->minus_one = 0;
}

// Returns true if the factorization has ended early. Called by all threads of the block, which
// receive the same answer. For kernels whose threads synchronize later.
template <class T>
__device__ inline bool BlockHalted(const LuControl<T>* control) {
  return __syncthreads_or(control->halt) != 0;
}
#endif

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_BLOCKED_LU_CONTROL_H_
