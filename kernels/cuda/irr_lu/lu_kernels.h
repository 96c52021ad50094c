// Factorizations of whole members, each by one team of threads.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_LU_KERNELS_H_
#define CROUT_KERNELS_CUDA_IRR_LU_LU_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/batch_member.h"
#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/cuda/irr_lu/member_team.h"
#include "kernels/dtype.h"

namespace crout::cuda {

// The least that pivots may be, in device memory; null: any. A pivot whose modulus (of a complex
// one |Re| + |Im|) is less gets that modulus, and its own sign; of a zero, the positive one. As
// `first_diagonal` has them for all members.
template <class T>
struct LeastPivots {
  const RealPart<T>* least = nullptr;  // > 0
  uint8_t* raised = nullptr;           // := kRaised or kRaisedFromZero; else it stays

  static constexpr uint8_t kRaised = 1;
  static constexpr uint8_t kRaisedFromZero = 2;

  constexpr LeastPivots From(int64_t first) const {
    return least == nullptr ? *this : LeastPivots{least + first, raised + first};
  }
};

// A batch and where its pivots and infos go (BatchFactors). In device memory. T: real, or Complex.
template <class T>
struct IrrLuBatch {
  T* data = nullptr;
  const BatchMember* members = nullptr;
  int64_t* ipiv = nullptr;
  int32_t* info = nullptr;
  LeastPivots<T> least;
};

// Enqueues the factorization of a block of columns of the members, from element (begin, begin) of
// each on: MemberBlocking::kBlock columns or what there are, by a block of threads for each member.
// `begin` is a multiple of that. Up to 1024 rows are kept in registers; more are worked on where
// they are, column by column. ipiv as LAPACK's; info is set at begin = 0, and then where it is 0.
template <class T>
cudaError_t LaunchIrrGetf2(const IrrLuBatch<T>& batch, int begin, const IrrMembers& members,
                           cudaStream_t stream);

// Enqueues the factorization of the members order[0, count), all of `team`, which is not kGrid.
// `overlap`: it may begin while the kernel before it in the stream, one of these for other members,
// ends.
template <class T>
cudaError_t LaunchMemberLu(const IrrLuBatch<T>& batch, MemberTeam team, const int32_t* order,
                           int count, bool overlap, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_LU_KERNELS_H_
