// Gauss-Jordan elimination of AX = B.
#ifndef CROUT_KERNELS_CUDA_GAUSS_JORDAN_GAUSS_JORDAN_H_
#define CROUT_KERNELS_CUDA_GAUSS_JORDAN_GAUSS_JORDAN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/direct_solver.h"

namespace crout::cuda {

// `gauss_jordan`: [A B] to reduced row echelon form by stripes, with partial pivoting (Carcenac
// 2014, Eyvazov 2021). A stripe is a group of columns that are eliminated together: its pivot block
// is factored by Crout's method and turns its rows of what lies to the right into
// A11^-1 [A12 B1], of which then all other rows, above and below, lose their multiple by matrix
// products over all of their columns. Carcenac's stripes are what one stream works on; here one
// stream runs all of them, since each product fills the device.
//
// n^3 + 2 n^2 nrhs operations. X is B's rows in their order: every interchange takes B along.
absl::StatusOr<std::unique_ptr<DirectSolver>> MakeGaussJordan(DeviceCore& core);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_GAUSS_JORDAN_GAUSS_JORDAN_H_
