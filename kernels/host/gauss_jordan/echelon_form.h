// SPDX-License-Identifier: Apache-2.0

// Reduced row echelon form of rectangular matrices on the host.
#ifndef CROUT_KERNELS_HOST_GAUSS_JORDAN_ECHELON_FORM_H_
#define CROUT_KERNELS_HOST_GAUSS_JORDAN_ECHELON_FORM_H_

#include <memory>

#include "kernels/echelon_reducer.h"
#include "kernels/host/device/executor.h"

namespace crout::host {

// Gauss-Jordan elimination by blocks of columns. Source: E. Eyvazov, Gauss-Jordan Solver of Linear
// Equation Systems on GPU (CTU, 2021); partial pivoting is added here. The bits do not depend on
// the number of threads.
std::unique_ptr<EchelonReducer> MakeEchelonReducer(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_GAUSS_JORDAN_ECHELON_FORM_H_
