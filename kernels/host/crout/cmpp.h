// SPDX-License-Identifier: Apache-2.0

// Crout's method: the reference implementation for the device versions.
#ifndef CROUT_KERNELS_HOST_CROUT_CMPP_H_
#define CROUT_KERNELS_HOST_CROUT_CMPP_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout::host {

// Crout's method with the unit diagonal in U, in blocks of columns: one BLAS product subtracts the
// contribution of all earlier blocks. Source: L. M. Cejka, Parallel Computation of LU Decomposition
// on GPUs (CTU in Prague, 2023).
//
// For k = 0, 1, ...:
//   l_ik = a_ik - sum_{m<k} l_im u_mk            i >= k
//   if l_kk is bad: exchange rows k and p, where |l_pk| is largest over i >= k
//   u_kj = (a_kj - sum_{m<k} l_km u_mj) / l_kk   j > k
// For complex numbers |z| is |Re z| + |Im z| (Abs1), here and in the pivoting rules below.

// "cmpp": every l_kk is bad (partial pivoting), unless LuParameters::pivoting selects conditional
// pivoting by an interval or a threshold. If l_kk and all candidates are exactly zero, info names
// the column and u_kj is set to 0: such a matrix need not have a factorization with the unit
// diagonal in U.
std::unique_ptr<LuAlgorithm> MakeCmpp(Executor& executor);

// "cm": no pivoting. Stops at the first l_kk that is exactly zero, with info = k + 1. Columns after
// its block are then unchanged.
std::unique_ptr<LuAlgorithm> MakeCm(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_CROUT_CMPP_H_
