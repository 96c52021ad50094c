// SPDX-License-Identifier: Apache-2.0

// The multifrontal method in the host's catalogue.
#ifndef CROUT_KERNELS_HOST_MULTIFRONTAL_METHOD_H_
#define CROUT_KERNELS_HOST_MULTIFRONTAL_METHOD_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"
#include "kernels/sparse_lu.h"

namespace crout::host {

// "multifrontal": sparse LU by dense fronts along the elimination tree, with row interchanges
// inside fronts (multifrontal.h).
std::unique_ptr<SparseLu> MakeMultifrontal(Executor& executor);

// "multifrontal": solves with multifrontal factors.
std::unique_ptr<TriangularSolver> MakeMultifrontalSolver(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_MULTIFRONTAL_METHOD_H_
