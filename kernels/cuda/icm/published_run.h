// SPDX-License-Identifier: Apache-2.0

// The published variant of the iterative Crout method on the device, MethodVariant::kPublished.
#ifndef CROUT_KERNELS_CUDA_ICM_PUBLISHED_RUN_H_
#define CROUT_KERNELS_CUDA_ICM_PUBLISHED_RUN_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/icm/icm_state.h"

namespace crout::cuda {

// In addition to IcmState. The sweeps of a launch are numbered from 1, so that results of
// successive sweeps can be distinguished without a barrier between them.
struct PublishedFlags {
  int32_t over;     // the run ended with `info`; zero before the first launch
  int32_t changed;  // number of the last sweep in which any section changed
  int32_t ended;    // number of the sweep after which the run ends, for a reason in IcmState
  int32_t reserved;
};

// One run. All matrices are n x n; all except `lu` have ld n.
template <class T>
struct PublishedRun {
  MatrixView<T> lu;  // on entry, the estimate; on exit, L and U
  T* a = nullptr;  // on entry, A with its rows in the estimate's order; its rows follow the pivots
  T* sums = nullptr;
  T* next = nullptr;
  int64_t* rows = nullptr;             // a permutation that follows the pivots
  int32_t* section_changed = nullptr;  // per section along a side: the last sweep that changed it
  int32_t* section_nan = nullptr;      // the last sweep that found an Inf or NaN in it
  PublishedFlags* flags = nullptr;
};

// Enqueues the start of the run: sums and counts := 0, a := lu, and lu := the start if there is
// one.
template <class T>
cudaError_t LaunchPublishedStart(const IcmRun& run, const PublishedRun<T>& work,
                                 const IcmStart<T>& start, int multiprocessors,
                                 cudaStream_t stream);

// Enqueues section `index` of the diagonal, the sections below and to the right of it, and their
// products, in one cooperative launch. kernels/host/icm/published_run.h defines the results; real
// types have the same bits and the same numbers of sweeps. As in the source, a thread handles one
// element and a block of threads a tile of block x block elements (block = 8, 16 or 32). One grid
// sweeps independent sections concurrently, each to its own end; the source uses a stream for each.
template <class T>
cudaError_t LaunchPublishedSection(const IcmRun& run, const PublishedRun<T>& work, int64_t index,
                                   int block, const DeviceLimits& limits, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_PUBLISHED_RUN_H_
