// Numbers in single precision as sums of two that the tensor cores take.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_SPLIT_TF32_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_SPLIT_TF32_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// Where the parts of a real matrix go, each of its transpose's shape. `high` is written twice, for
// a product that needs it twice.
struct Tf32Parts {
  MatrixView<float> high;
  MatrixView<float> high_again;
  MatrixView<float> low;
};

// Enqueues high := a^T cut off after TF32's 11 bits, low := the rest rounded to as many: their sum
// is a^T to 22 bits, unless `low` is below the normal range. Nothing once `control` has halted. T,
// float or Complex<float>, is what is factored.
template <class T>
cudaError_t LaunchSplitTf32(const MatrixView<float>& a, const Tf32Parts& parts,
                            const LuControl<T>* control, cudaStream_t stream);

// The same of the real matrix, of twice the rows and columns, that multiplies complex numbers
// stored as pairs of real ones: a block of two by two, re -im over im re, for each element.
cudaError_t LaunchSplitTf32(const MatrixView<Complex<float>>& a, const Tf32Parts& parts,
                            const LuControl<Complex<float>>* control, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_SPLIT_TF32_H_
