// SPDX-License-Identifier: Apache-2.0

// Computes the diagonal section of the iterative Crout method and the sections below it column by
// column, if diagonal elements may be bad.
#ifndef CROUT_KERNELS_CUDA_ICM_ICM_PANEL_H_
#define CROUT_KERNELS_CUDA_ICM_ICM_PANEL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/icm/icm_state.h"

namespace crout::cuda {

// Row `from` moves to row `to`.
struct IcmMove {
  int32_t to;
  int32_t from;
};

// The largest candidate of a block of threads for the pivot of one column. Read and written as a
// whole; `turn` signals that the block has finished the column.
struct alignas(16) IcmCandidate {
  double value;  // the element; for complex numbers its absolute value (Abs1)
  int32_t row;
  int32_t turn;
};

// Columns [begin, begin + width) of a. Products with earlier sections are already subtracted.
template <class T>
struct IcmPanel {
  MatrixView<T> a;
  int64_t begin = 0;
  int64_t width = 0;
  int64_t index = 0;
  T* u = nullptr;  // section_size^2: rows of U until the rows of `a` are exchanged
  // 2 per multiprocessor; without a valid `turn` before the run.
  IcmCandidate* candidates = nullptr;
  IcmMove* moves = nullptr;  // 2 section_size
  int64_t* ipiv = nullptr;
  int32_t* origin = nullptr;  // for a warm start (IcmStart), exchanged like the rows; else null
};

// Enqueues the computation of the panel's sections in one cooperative launch; a no-op if they are
// committed. Let b be the column that may be bad. Everything up to b is final. The mask covers rows
// >= b and columns > b. With this mask, a sweep can change only row b of U. The next sweep can
// change only column b + 1 of L, in the diagonal section and below. So only these are computed.
// Rows do not move until the panel is done.
template <class T>
cudaError_t LaunchIcmPanel(const IcmRun& run, const IcmPanel<T>& work, const DeviceLimits& limits,
                           cudaStream_t stream);

// Enqueues the panel's row exchanges in all columns of `a`, and stores U in its place.
template <class T>
cudaError_t LaunchIcmExchange(const IcmRun& run, const IcmPanel<T>& work,
                              const DeviceLimits& limits, cudaStream_t stream);

// The widest panel, in columns, for which the GPU has enough shared memory: a multiple of kIcmTile
// up to kIcmMaxSection, or 0 if none fits. The same for float32, float64 and complex64; it may be
// smaller for complex128.
int64_t MaxSearchedColumns(DType dtype, const DeviceLimits& limits);

// Dynamic shared memory in bytes: of the kernel that searches, and of the kernel that exchanges
// rows after a panel of `columns` columns.
template <class T>
size_t IcmPanelBytes();
template <class T>
size_t IcmExchangeBytes(int64_t columns);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_ICM_PANEL_H_
