// Numbers in single precision as sums of two that the tensor cores take.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_SPLIT_TF32_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_SPLIT_TF32_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// Where the parts of a matrix go, each of its transpose's shape. `high` is written twice, for a
// product that needs it twice.
template <class T>
struct Tf32Parts {
  MatrixView<T> high;
  MatrixView<T> high_again;
  MatrixView<T> low;
};

// Enqueues high := a^T cut off after TF32's 11 bits, low := the rest rounded to as many: their sum
// is a^T to 22 bits, unless `low` is below the normal range. Nothing once `control` has halted. T
// is float, or Complex<float>, of which each part is split so; a^T is not conjugated.
template <class T>
cudaError_t LaunchSplitTf32(const MatrixView<T>& a, const Tf32Parts<T>& parts,
                            const LuControl<T>* control, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_SPLIT_TF32_H_
