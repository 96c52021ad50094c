// Blocked LU factorization without pivoting as a graph of tasks.
#ifndef CROUT_KERNELS_HOST_BLOCK_LU_BLOCK_LU_H_
#define CROUT_KERNELS_HOST_BLOCK_LU_BLOCK_LU_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout::host {

// "block_lu": right-looking LU by square tiles without pivoting, unit diagonal in L, after M.
// Rodrigues and S. Estevao, LU Factorization (Porto, 2023): an OpenMP task for each tile and step,
// ordered by depend clauses, the critical path first, or, MethodVariant::kPublished, with the
// report's priorities, which go by the distance from the diagonal. LuParameters::block_size is the
// order of a tile, 256 by default: of 128 and 256 the report has figures. For matrices that need no
// pivoting, such as diagonally dominant ones. Each tile sees the same operations in the same order
// however many threads there are: the bits do not depend on their number.
//
// It refuses where a pivot underflows, that is, where |u_kk| (Abs1 of a complex one) is below the
// type's smallest normal number: info = k + 1, and rows and columns from k on are left unfinished.
// A pivot that is merely small is taken; the pivot growth tells.
std::unique_ptr<LuAlgorithm> MakeBlockLu(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_BLOCK_LU_BLOCK_LU_H_
