// The diagonal section of the iterative Crout method and those below it, where diagonal elements
// may be bad: one column after the other.
#ifndef CROUT_KERNELS_CUDA_ICM_ICM_PANEL_H_
#define CROUT_KERNELS_CUDA_ICM_ICM_PANEL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/icm/icm_state.h"

namespace crout::cuda {

// Row `from` goes to row `to`.
struct IcmMove {
  int32_t to;
  int32_t from;
};

// The largest candidate of a block of threads for the pivot of one column. Written and read whole:
// with `turn` it says that the block is done with the column.
struct alignas(16) IcmCandidate {
  double value;  // the element; of a complex one the absolute value (Abs1)
  int32_t row;
  int32_t turn;
};

// Columns [begin, begin + width) of a, from which the products with earlier sections have been
// subtracted.
template <class T>
struct IcmPanel {
  MatrixView<T> a;
  int64_t begin = 0;
  int64_t width = 0;
  int64_t index = 0;
  T* u = nullptr;  // section_size^2: rows of U until the rows of a are exchanged
  IcmCandidate* candidates = nullptr;  // 2 for each multiprocessor; no turn before the run
  IcmMove* moves = nullptr;            // 2 section_size
  int64_t* ipiv = nullptr;
  int32_t* origin = nullptr;  // of a warm start (IcmStart), exchanged as the rows are; else null
};

// Enqueues the sections of the panel, in one cooperative launch, unless they are committed already.
// With b the column that may be bad, all up to b is final; the mask on rows >= b and columns > b
// lets a sweep change no more than row b of U, and the next one column b + 1 of L, in the diagonal
// section and below: only these are computed. Rows stay where they are until the panel is done.
template <class T>
cudaError_t LaunchIcmPanel(const IcmRun& run, const IcmPanel<T>& work, const DeviceLimits& limits,
                           cudaStream_t stream);

// Exchanges the rows of all columns of a as the panel found, and puts U in its place.
template <class T>
cudaError_t LaunchIcmExchange(const IcmRun& run, const IcmPanel<T>& work,
                              const DeviceLimits& limits, cudaStream_t stream);

// The widest panel, in columns, that the GPU has the shared memory for: a multiple of kIcmTile up
// to kIcmMaxSection, 0 where it has not the memory for any. The same for float32, float64 and
// complex64; complex128 may have narrower ones.
int64_t MostSearchedColumns(DType dtype, const DeviceLimits& limits);

// Dynamic shared memory of the kernel that searches, and of the one that exchanges rows after a
// panel of so many columns.
template <class T>
size_t IcmPanelBytes();
template <class T>
size_t IcmExchangeBytes(int64_t columns);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_ICM_PANEL_H_
