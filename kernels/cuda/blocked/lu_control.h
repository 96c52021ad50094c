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
// By one thread, at the end of a kernel. Kernels that run beside it may see it midway, even threads
// of one block differently, unless they ask BlockHalted: what they leave is abandoned with the
// matrix.
template <class T>
__device__ inline void Halt(LuControl<T>* control) {
  control->halt = 1;
  control->minus_one = 0;
}

// The same for all threads of a block, which all ask: for those that wait for each other later.
template <class T>
__device__ inline bool BlockHalted(const LuControl<T>* control) {
  return __syncthreads_or(control->halt) != 0;
}
#endif

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_BLOCKED_LU_CONTROL_H_
