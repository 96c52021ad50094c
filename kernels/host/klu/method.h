// SPDX-License-Identifier: Apache-2.0

// KLU in the host's catalogue.
#ifndef CROUT_KERNELS_HOST_KLU_METHOD_H_
#define CROUT_KERNELS_HOST_KLU_METHOD_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"
#include "kernels/sparse_lu.h"

namespace crout::host {

// "klu": left-looking sparse LU on one core, for circuits and power grids (klu.h).
std::unique_ptr<SparseLu> MakeKlu(Executor& executor);

// "klu": solves with KLU factors.
std::unique_ptr<TriangularSolver> MakeKluSolver(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_KLU_METHOD_H_
