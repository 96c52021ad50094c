// SPDX-License-Identifier: Apache-2.0

// Gauss-Jordan elimination of AX = B.
#ifndef CROUT_KERNELS_CUDA_GAUSS_JORDAN_GAUSS_JORDAN_H_
#define CROUT_KERNELS_CUDA_GAUSS_JORDAN_GAUSS_JORDAN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/direct_solver.h"

namespace crout::cuda {

// `gauss_jordan`: reduces [A B] to reduced row echelon form by stripes, with partial pivoting
// (Carcenac 2014, Eyvazov 2021). A stripe is a group of columns that are eliminated together.
// Crout's method factors its pivot block and turns the pivot rows to the right into A11^-1 [A12
// B1]. Matrix products then subtract multiples of these rows from all other rows, above and below.
// Carcenac assigns one stream to each stripe. Here one stream handles all stripes, because each
// product fills the device.
//
// n^3 + 2 n^2 nrhs operations. X has the order of B's rows, because every interchange also applies
// to B.
absl::StatusOr<std::unique_ptr<DirectSolver>> MakeGaussJordan(DeviceCore& core);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_GAUSS_JORDAN_GAUSS_JORDAN_H_
