// SPDX-License-Identifier: Apache-2.0

// Reduced row echelon form of rectangular matrices on the device.
#ifndef CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_FORM_H_
#define CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_FORM_H_

#include <memory>

#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/echelon_reducer.h"

namespace crout::cuda {

// Gauss-Jordan elimination (E. Eyvazov, Gauss-Jordan Solver of Linear Equation Systems on GPU, CTU
// 2021) by panels of columns, with partial pivoting, which the published method lacks. The update
// of the columns right of a panel is one matrix product, whose shape does not depend on the number
// of pivots. So only the device needs the rank, and nothing waits for the host before the end.
std::unique_ptr<EchelonReducer> MakeEchelonReducer(DeviceCore& core);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_FORM_H_
