// The diagonal section of the iterative Crout method, by synchronous sweeps.
#ifndef CROUT_KERNELS_CUDA_ICM_ICM_DIAGONAL_H_
#define CROUT_KERNELS_CUDA_ICM_ICM_DIAGONAL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/icm/icm_state.h"

namespace crout::cuda {

// The section of rows and columns [begin, begin + width) of a, from which the products with earlier
// sections have been subtracted.
template <class T>
struct IcmDiagonal {
  MatrixView<T> a;
  int64_t begin = 0;
  int64_t width = 0;
  int64_t index = 0;  // of the section
  IcmStart<T> start;
  T* buffers[2] = {};  // section_size^2 each; IcmState::diagonal says which holds the result
  unsigned long long* largest =
      nullptr;  // largest[j]: max |l_ij| (Abs1) over the section's i >= j, bits
};

// Enqueues sweeps over the whole section, all in one cooperative launch, as if no diagonal element
// were bad by a rule that compares with its column; by the interval rule elements after a bad one
// wait. a stays as it is. IcmState::swept says whether they converged without a bad element.
template <class T>
cudaError_t LaunchIcmDiagonal(const IcmRun& run, const IcmDiagonal<T>& work,
                              const DeviceLimits& limits, cudaStream_t stream);

// Decides, once the sections below lie in `below` ((a.rows - begin - width) x width, packed) and
// `largest` covers them too, whether the pivots satisfy the rule; writes diagonal section and
// sections below to a if they do, and sets IcmState::committed and info.
template <class T>
cudaError_t LaunchIcmCommit(const IcmRun& run, const IcmDiagonal<T>& work, const T* below,
                            int multiprocessors, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_ICM_DIAGONAL_H_
