// Crout's method with partial pivoting: the reference that device versions are compared with.
#ifndef CROUT_KERNELS_HOST_CMPP_H_
#define CROUT_KERNELS_HOST_CMPP_H_

#include <memory>

#include "kernels/host/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout {

// "cmpp": Crout's method with partial pivoting, unit diagonal in U, after L. M. Cejka, Parallel
// Computation of LU Decomposition on GPUs (CTU in Prague, 2023), in blocks of columns. One core.
//
// For k = 0, 1, ...:
//   l_ik = a_ik - sum_{m<k} l_im u_mk            i >= k
//   exchange rows k and p, where |l_pk| is largest over i >= k
//   u_kj = (a_kj - sum_{m<k} l_km u_mj) / l_kk   j > k
// Where l_kk is exactly zero, info names it and u_kj := 0: a factorization with the unit diagonal
// in U need not exist then.
std::unique_ptr<LuAlgorithm> MakeHostCmpp(HostExecutor& executor);

}  // namespace crout

#endif  // CROUT_KERNELS_HOST_CMPP_H_
