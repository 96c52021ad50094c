// What the kernels of one blocked factorization share in device memory, so that it can end early
// without the host: later kernels see that it did.
#ifndef CROUT_KERNELS_CUDA_BLOCKED_LU_CONTROL_H_
#define CROUT_KERNELS_CUDA_BLOCKED_LU_CONTROL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace crout::cuda {

template <class T>
struct LuControl {
  // The scalars of the matrix products, which cuBLAS reads here. A halt clears `minus_one`: the
  // products enqueued behind it return without touching the matrix.
  T minus_one;
  T one;
  int info;  // LAPACK's, of what ran so far
  int halt;  // non-zero: kernels return at once
};

// Enqueues the start of a factorization: a fresh `control`.
template <class T>
cudaError_t LaunchStartLu(LuControl<T>* control, cudaStream_t stream);

#ifdef __CUDACC__
// Ends the factorization early. Called by one thread, at the end of a kernel. Kernels that run at
// the same time may see it midway, and so may some threads of a block and not others, unless they
// ask BlockHalted(). What such kernels leave does not matter: the matrix is given up.
template <class T>
__device__ inline void Halt(LuControl<T>* control) {
  control->halt = 1;
  control->minus_one = 0;
}

// Whether the factorization was ended, with one answer for all threads of the block, which all have
// to call it: for kernels whose threads wait for each other later.
template <class T>
__device__ inline bool BlockHalted(const LuControl<T>* control) {
  return __syncthreads_or(control->halt) != 0;
}
#endif

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_BLOCKED_LU_CONTROL_H_
