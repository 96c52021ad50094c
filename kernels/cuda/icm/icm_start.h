// SPDX-License-Identifier: Apache-2.0

// The first and last steps of a run: its state, and the permutation of a warm start.
#ifndef CROUT_KERNELS_CUDA_ICM_ICM_START_H_
#define CROUT_KERNELS_CUDA_ICM_ICM_START_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/icm/icm_state.h"

namespace crout::cuda {

// Enqueues the initial state of a run: no sweeps, no pivots, ipiv[i] = i + 1, and origin[i] = i if
// `origin` is not null.
cudaError_t LaunchIcmInitialize(const IcmRun& run, int64_t n, int64_t* ipiv, int32_t* origin,
                                cudaStream_t stream);

// Enqueues a := P a, where row i of P a is row p[i] of a. Works column by column through `scratch`,
// which has n elements per multiprocessor.
template <class T>
cudaError_t LaunchIcmPermute(const MatrixView<T>& a, const int64_t* p, T* scratch,
                             int multiprocessors, cudaStream_t stream);

// Enqueues ipiv := the interchanges that bring row first[second[i]] to row i, where `second` is the
// permutation of the interchanges in ipiv. `scratch`: 2 n int32. If no row moved in this run, ipiv
// := start_ipiv.
cudaError_t LaunchIcmCompose(const IcmRun& run, int64_t n, const int64_t* start_ipiv,
                             const int64_t* first, const int64_t* second, int32_t* scratch,
                             int64_t* ipiv, const DeviceLimits& limits, cudaStream_t stream);

size_t IcmComposeBytes(const DeviceLimits& limits);  // its maximum dynamic shared memory

// Enqueues the conversion of info in the state to LAPACK's.
cudaError_t LaunchIcmFinalize(const IcmRun& run, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_ICM_START_H_
