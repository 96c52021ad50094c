// SPDX-License-Identifier: Apache-2.0

// Factors whole members, each by one team of threads.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_LU_KERNELS_H_
#define CROUT_KERNELS_CUDA_IRR_LU_LU_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/batch_member.h"
#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/cuda/irr_lu/member_team.h"
#include "kernels/dtype.h"

namespace crout::cuda {

// Lower bounds for the moduli of pivots, in device memory; null: no bounds. A pivot whose modulus
// (|Re| + |Im| for complex numbers) is below its bound is perturbed: its modulus becomes the bound
// and its sign stays; a zero becomes positive. The arrays cover all members, indexed by
// `first_diagonal`.
template <class T>
struct MinPivots {
  const RealPart<T>* least = nullptr;  // > 0
  // Set to kPerturbed or kPerturbedZero for a perturbed pivot; otherwise not modified.
  uint8_t* pivot_flags = nullptr;

  static constexpr uint8_t kPerturbed = 1;
  static constexpr uint8_t kPerturbedZero = 2;

  constexpr MinPivots From(int64_t first) const {
    return least == nullptr ? *this : MinPivots{least + first, pivot_flags + first};
  }
};

// A batch, and the destinations of its pivots and infos (BatchFactors). In device memory. T: real,
// or Complex.
template <class T>
struct IrrLuBatch {
  T* data = nullptr;
  const BatchMember* members = nullptr;
  int64_t* ipiv = nullptr;
  int32_t* info = nullptr;
  MinPivots<T> least;
};

// Enqueues the factorization of a block of columns of the members, from each member's element
// (begin, begin) on: MemberBlocking::kBlock columns or as many as are left, one block of threads
// per member. `begin` is a multiple of kBlock. Up to 1024 rows are kept in registers; more rows are
// updated in memory, column by column. ipiv has LAPACK's format. info is set to 0 at begin = 0, and
// then to the first singular column.
template <class T>
cudaError_t LaunchIrrGetf2(const IrrLuBatch<T>& batch, int begin, const IrrMembers& members,
                           cudaStream_t stream);

// Enqueues the factorization of the members order[0, count), all of `team`, which must not be
// kGrid. `overlap`: the kernel may start while the previous kernel in the stream ends. That kernel
// must be one of these, for other members.
template <class T>
cudaError_t LaunchMemberLu(const IrrLuBatch<T>& batch, MemberTeam team, const int32_t* order,
                           int count, bool overlap, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_LU_KERNELS_H_
