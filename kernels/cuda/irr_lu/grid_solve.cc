// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/grid_solve.h"

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/irr_lu/irr_laswp.h"
#include "kernels/cuda/irr_lu/irr_trsm.h"

namespace crout::cuda {
namespace {

template <class T>
cudaError_t Exchange(const IrrSolveBatch<T>& batch, bool backward, int columns,
                     const IrrOrder& parts, const IrrMembers& members, cudaStream_t stream) {
  IrrLaswp<T> laswp;
  laswp.backward = backward;
  laswp.end = parts.grid.diagonal;
  laswp.n = columns;
  laswp.ipiv = batch.ipiv;
  laswp.pivots = batch.lu_members;
  laswp.a = {batch.b, batch.b_members};
  return LaunchIrrLaswp(laswp, members, stream);
}

}  // namespace

template <class T>
cudaError_t LaunchGridSolve(const IrrSolveBatch<T>& batch, Op op, int columns,
                            const IrrOrder& parts, const int32_t* order, cudaStream_t stream) {
  const IrrMembers members = {order, parts.Count(MemberTeam::kGrid)};
  if (members.count == 0 || columns == 0) return cudaSuccess;
  const bool transposed = op != Op::kNone;
  cudaError_t code = cudaSuccess;
  if (!transposed) code = Exchange(batch, false, columns, parts, members, stream);
  for (const bool lower : {!transposed, transposed}) {
    if (code != cudaSuccess) return code;
    IrrTrsm<T> trsm;
    trsm.op = op;
    trsm.lower = lower;
    trsm.unit = lower;
    trsm.m = parts.grid.diagonal;
    trsm.n = columns;
    trsm.t = {batch.lu, batch.lu_members};
    trsm.b = {batch.b, batch.b_members};
    code = LaunchIrrTrsm(trsm, members, stream);
  }
  if (code == cudaSuccess && transposed) {
    code = Exchange(batch, true, columns, parts, members, stream);
  }
  return code != cudaSuccess ? code : LaunchFillSingular(batch, members, stream);
}

template cudaError_t LaunchGridSolve(const IrrSolveBatch<float>&, Op, int, const IrrOrder&,
                                     const int32_t*, cudaStream_t);
template cudaError_t LaunchGridSolve(const IrrSolveBatch<double>&, Op, int, const IrrOrder&,
                                     const int32_t*, cudaStream_t);
template cudaError_t LaunchGridSolve(const IrrSolveBatch<Complex<float>>&, Op, int, const IrrOrder&,
                                     const int32_t*, cudaStream_t);
template cudaError_t LaunchGridSolve(const IrrSolveBatch<Complex<double>>&, Op, int,
                                     const IrrOrder&, const int32_t*, cudaStream_t);

}  // namespace crout::cuda
