// The iterative Crout method on the device as published, MethodVariant::kPublished.
#ifndef CROUT_KERNELS_CUDA_ICM_PUBLISHED_RUN_H_
#define CROUT_KERNELS_CUDA_ICM_PUBLISHED_RUN_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/icm/icm_state.h"

namespace crout::cuda {

// Beside IcmState. The sweeps of a launch are numbered from 1, so that what one says of itself is
// told from what the one before said, without a barrier between.
struct PublishedFlags {
  int32_t over;     // the run ended with `info`: zero before the first launch
  int32_t changed;  // the last sweep in which any section changed
  int32_t ended;    // the sweep after which the run ends, for a reason in IcmState
  int32_t reserved;
};

// One run. All matrices are n x n; but for `lu` their ld is n.
template <class T>
struct PublishedRun {
  MatrixView<T> lu;  // on entry the estimate; on exit L and U
  T* a = nullptr;    // on entry A, its rows in the estimate's order; follows the pivots
  T* sums = nullptr;
  T* next = nullptr;
  int64_t* rows = nullptr;  // a permutation, which follows the pivots
  int32_t* section_changed =
      nullptr;                     // of each section along a side: the last sweep that changed it
  int32_t* section_nan = nullptr;  // or found an Inf or NaN in it
  PublishedFlags* flags = nullptr;
};

// Enqueues the run's beginning: sums and counts := 0, a := lu, and lu := the start, if there is
// one.
template <class T>
cudaError_t LaunchPublishedStart(const IcmRun& run, const PublishedRun<T>& work,
                                 const IcmStart<T>& start, int multiprocessors,
                                 cudaStream_t stream);

// Enqueues section `index` of the diagonal, those below and right of it, and their products, in one
// cooperative launch: what kernels/host/icm/published_run.h defines, to the same bits of real types
// and the same numbers of sweeps. One element to a thread, a tile of block x block elements
// (block = 8, 16 or 32) to a block of threads, as in the source. Sections that are independent are
// swept side by side, each to its own end, by one grid: there the source has a stream for each.
template <class T>
cudaError_t LaunchPublishedSection(const IcmRun& run, const PublishedRun<T>& work, int64_t index,
                                   int block, const DeviceLimits& limits, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_PUBLISHED_RUN_H_
