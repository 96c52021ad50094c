// Crout's method: the reference that device versions are compared with.
#ifndef CROUT_KERNELS_HOST_CROUT_CMPP_H_
#define CROUT_KERNELS_HOST_CROUT_CMPP_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout::host {

// Unit diagonal in U, after L. M. Cejka, Parallel Computation of LU Decomposition on GPUs (CTU in
// Prague, 2023), in blocks of columns: what earlier blocks contribute is one BLAS product.
//
// For k = 0, 1, ...:
//   l_ik = a_ik - sum_{m<k} l_im u_mk            i >= k
//   where l_kk is bad, exchange rows k and p, where |l_pk| is largest over i >= k (of complex
//   numbers |Re| + |Im|, Abs1, here and in the rules below)
//   u_kj = (a_kj - sum_{m<k} l_km u_mj) / l_kk   j > k

// "cmpp": every l_kk is bad (partial pivoting), unless LuParameters::pivoting says otherwise:
// conditional pivoting by an interval or a threshold. Where l_kk is exactly zero with all
// candidates, info names it and u_kj := 0: a factorization with the unit diagonal in U need not
// exist then.
std::unique_ptr<LuAlgorithm> MakeCmpp(Executor& executor);

// "cm": without pivoting. It ends at the first l_kk that is exactly zero, with info k + 1; columns
// beyond its block are then as they came.
std::unique_ptr<LuAlgorithm> MakeCm(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_CROUT_CMPP_H_
