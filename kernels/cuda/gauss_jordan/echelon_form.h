// Reduced row echelon form on the device, of rectangular matrices.
#ifndef CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_FORM_H_
#define CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_FORM_H_

#include <memory>

#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/echelon_reducer.h"

namespace crout::cuda {

// Gauss-Jordan elimination with partial pivoting (E. Eyvazov, Gauss-Jordan Solver of Linear
// Equation Systems on GPU, CTU 2021, which has none), by panels of columns. What a panel does to
// the columns right of it is one matrix product, of the same shape however many pivots it has: the
// rank is known to the device alone, and nothing waits for the host before the end.
std::unique_ptr<EchelonReducer> MakeEchelonReducer(DeviceCore& core);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_FORM_H_
