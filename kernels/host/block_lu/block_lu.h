// SPDX-License-Identifier: Apache-2.0

// Blocked LU factorization without pivoting as a task graph.
#ifndef CROUT_KERNELS_HOST_BLOCK_LU_BLOCK_LU_H_
#define CROUT_KERNELS_HOST_BLOCK_LU_BLOCK_LU_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout::host {

// "block_lu": right-looking LU by square tiles without pivoting, unit diagonal in L. Source: M.
// Rodrigues and S. Estevao, LU Factorization (Porto, 2023).
//
// One OpenMP task updates one tile in one step. Depend clauses order the tasks. Priorities favor
// the critical path. MethodVariant::kPublished uses the report's priorities, which depend on the
// distance from the diagonal. LuParameters::block_size is the order of a tile: 256 by default, one
// of the two sizes that the report measured (128 and 256).
//
// Suitable for matrices that need no pivoting, such as diagonally dominant ones. Each tile sees the
// same operations in the same order for any number of threads, so the bits do not depend on it.
//
// A pivot underflows if |u_kk| (Abs1 for complex types) is below the smallest normal number. The
// factorization then stops with info = k + 1 and leaves rows and columns from k on unfinished.
// Small normal pivots are accepted and show up in the pivot growth.
std::unique_ptr<LuAlgorithm> MakeBlockLu(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_BLOCK_LU_BLOCK_LU_H_
