// SPDX-License-Identifier: Apache-2.0

// Solves with the factors of whole members, each by one team of threads, and the backward errors of
// solutions. C++17: kernels include it.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_SOLVE_KERNELS_H_
#define CROUT_KERNELS_CUDA_IRR_LU_SOLVE_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/batch_member.h"
#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/cuda/irr_lu/member_team.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// The factors of a batch, and right-hand sides that the solutions replace. In device memory. Member
// i of `b_members` has as many rows as the square member i of the factors, and any number of
// columns. T: real, or Complex.
template <class T>
struct IrrSolveBatch {
  const T* lu = nullptr;
  const BatchMember* lu_members = nullptr;
  const int64_t* ipiv = nullptr;
  const int32_t* info = nullptr;
  T* b = nullptr;
  const BatchMember* b_members = nullptr;
};

// Enqueues the solves with op(A) of the members order[0, count), all of `team`, which must not be
// kGrid. If A is singular, X is NaN. `overlap` has the meaning it has in LaunchMemberLu.
template <class T>
cudaError_t LaunchMemberSolve(const IrrSolveBatch<T>& batch, Op op, MemberTeam team,
                              const int32_t* order, int count, bool overlap, cudaStream_t stream);

// Enqueues X := NaN for those members whose A is singular.
template <class T>
cudaError_t LaunchFillSingular(const IrrSolveBatch<T>& batch, const IrrMembers& members,
                               cudaStream_t stream);

// Systems in device memory: member i of A, and of X and B, which share one layout.
template <class T>
struct BatchSystems {
  const T* a = nullptr;
  const BatchMember* a_members = nullptr;
  const T* x = nullptr;
  const T* b = nullptr;
  const BatchMember* rhs_members = nullptr;
};

// Enqueues errors[i] (see BatchLu::BackwardErrors) for all members, one thread block each.
template <class T>
cudaError_t LaunchBackwardErrors(Op op, const BatchSystems<T>& systems, int64_t members,
                                 double* errors, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_SOLVE_KERNELS_H_
