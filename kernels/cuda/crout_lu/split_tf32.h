// SPDX-License-Identifier: Apache-2.0

// Splits single-precision numbers into sums of two TF32 numbers for the tensor cores.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_SPLIT_TF32_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_SPLIT_TF32_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// Destinations of the parts of a real matrix, each with the shape of its transpose. `high` is
// written twice, for a product that uses it twice.
struct Tf32Parts {
  MatrixView<float> high;
  MatrixView<float> high_copy;
  MatrixView<float> low;
};

// Enqueues high := a^T truncated to TF32's 11 bits, and low := the remainder rounded to 11 bits.
// Their sum is a^T to 22 bits unless `low` is below the normal range. No-op once `control` has
// halted. T is the type of the matrix being factored, float or Complex<float>.
template <class T>
cudaError_t LaunchSplitTf32(const MatrixView<float>& a, const Tf32Parts& parts,
                            const LuControl<T>* control, cudaStream_t stream);

// The same for the real matrix of twice the rows and columns that represents multiplication by a
// complex matrix: each element becomes the 2 x 2 block [re -im; im re].
cudaError_t LaunchSplitTf32(const MatrixView<Complex<float>>& a, const Tf32Parts& parts,
                            const LuControl<Complex<float>>* control, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_SPLIT_TF32_H_
