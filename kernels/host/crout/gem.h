// Gaussian elimination, the textbook's method in blocks.
#ifndef CROUT_KERNELS_HOST_CROUT_GEM_H_
#define CROUT_KERNELS_HOST_CROUT_GEM_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout::host {

// "gem": right-looking Gaussian elimination with partial pivoting, unit diagonal in L (Golub and
// Van Loan, Matrix Computations, 4th ed., algorithm 3.4.1), in blocks of columns whose updates are
// BLAS products. It divides by pivots, so that subnormal ones do no harm within a block. Beyond a
// zero pivot it goes on with a zero column of L: PA = LU holds all the same.
std::unique_ptr<LuAlgorithm> MakeGem(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_CROUT_GEM_H_
