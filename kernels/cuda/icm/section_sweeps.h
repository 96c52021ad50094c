// SPDX-License-Identifier: Apache-2.0

// Sweeps of sections that depend on one final triangle. These are the sections below and to the
// right of a diagonal section of the iterative Crout method, and the sections of the iterative
// triangular solver.
#ifndef CROUT_KERNELS_CUDA_ICM_SECTION_SWEEPS_H_
#define CROUT_KERNELS_CUDA_ICM_SECTION_SWEEPS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/icm/icm_state.h"

namespace crout::cuda {

// Columns x of unknowns, each the fixed point of
//   x_p = (b_p - sum_{k<p} m_pk x_k) / d_p,   0 <= p < unknowns.
// Strides may be negative, so that an upper triangle is processed as a lower one.
template <class T>
struct SectionSweeps {
  int64_t unknowns = 0;
  int64_t columns = 0;
  const T* m = nullptr;  // m_pk at m[p * m_row + k * m_col]
  int64_t m_row = 0, m_col = 0;
  const T* second_m = nullptr;  // used instead of m if the state's `diagonal` is non-zero
  bool unit = true;             // d = 1; otherwise d_p = m_pp, and 0 makes x_p := 0
  const T* b = nullptr;         // b_p of column c at b[p * b_row + c * b_col]; may be x
  int64_t b_row = 0, b_col = 0;
  T* x = nullptr;
  int64_t x_row = 0, x_col = 0;
  // The sweeps begin with b, with b / d if `scaled`, or with a warm start. Element (p, c) of a warm
  // start is start(row + p, col + c) or, if `transposed`, start(row + c, col + p).
  bool scaled = false;
  IcmStart<T> start;
  int64_t row = 0, col = 0;
  bool transposed = false;
  // For each p, the bits of the largest |x_p| (Abs1) so far. May be null.
  unsigned long long* largest = nullptr;
  // If true, does nothing unless the diagonal section converged by sweeps (IcmState::swept).
  bool only_if_swept = false;
  // Count for the section of columns that begins at c: sweeps[c / size * step].
  int32_t* sweeps = nullptr;
  int64_t sweeps_step = 0;
};

// The largest number of unknowns for which the GPU has enough shared memory: a multiple of kIcmTile
// up to kIcmMaxSection, or 0 if not even two tiles fit. The same for float32, float64 and
// complex64; it may be smaller for complex128.
int64_t MaxSweptUnknowns(DType dtype, const DeviceLimits& limits);
size_t SectionSweepsBytes(const DeviceLimits& limits);  // maximum dynamic shared memory

// Enqueues synchronous sweeps of each column until every element has converged. Each column has at
// most MaxSweptUnknowns() unknowns. If `run.state` is null, nothing is reported, and non-finite
// elements are left as they are once everything that they depend on is final.
template <class T>
cudaError_t LaunchSectionSweeps(const IcmRun& run, const SectionSweeps<T>& work,
                                const DeviceLimits& limits, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_SECTION_SWEEPS_H_
