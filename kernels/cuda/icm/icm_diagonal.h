// SPDX-License-Identifier: Apache-2.0

// Computes the diagonal section of the iterative Crout method by synchronous sweeps.
#ifndef CROUT_KERNELS_CUDA_ICM_ICM_DIAGONAL_H_
#define CROUT_KERNELS_CUDA_ICM_ICM_DIAGONAL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/icm/icm_state.h"

namespace crout::cuda {

// The section of rows and columns [begin, begin + width) of a. Products with earlier sections are
// already subtracted.
template <class T>
struct IcmDiagonal {
  MatrixView<T> a;
  int64_t begin = 0;
  int64_t width = 0;
  int64_t index = 0;  // index of the section
  IcmStart<T> start;
  T* buffers[2] = {};  // section_size^2 each; IcmState::diagonal selects the buffer with the result
  unsigned long long* largest =
      nullptr;  // largest[j]: bits of max |l_ij| (Abs1) over the section's i >= j
};

// Enqueues sweeps over the whole section in one cooperative launch. Rules that compare a diagonal
// element with its column are not applied here. With the interval rule, elements after a bad one
// wait. `a` is not modified. IcmState::swept reports whether the sweeps converged without a bad
// element.
template <class T>
cudaError_t LaunchIcmDiagonal(const IcmRun& run, const IcmDiagonal<T>& work,
                              const DeviceLimits& limits, cudaStream_t stream);

// Checks whether the pivots satisfy the rule. Call once the sections below are in `below` ((a.rows
// - begin - width) x width, packed) and `largest` covers them too. If the pivots are accepted,
// writes the diagonal section and the sections below to `a`, and sets IcmState::committed. Sets
// info.
template <class T>
cudaError_t LaunchIcmCommit(const IcmRun& run, const IcmDiagonal<T>& work, const T* below,
                            int multiprocessors, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_ICM_DIAGONAL_H_
