// SPDX-License-Identifier: Apache-2.0

// The kernels of the probe in irr_lu.h. C++17: kernels include it.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_PROBE_KERNELS_H_
#define CROUT_KERNELS_CUDA_IRR_LU_PROBE_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/batch_member.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/numerics/normalizing_scale.h"

namespace crout::cuda {

// A member's part of the workspace: two numbers about A, then the vectors.
template <class T>
class ProbePart {
 public:
  using Wide = WideType<T>;

  constexpr ProbePart(std::byte* memory, const BatchMember& member)
      : memory_(memory), cols_(member.cols), diagonal_(member.diagonal()) {}

  // A multiple of 16.
  static constexpr size_t Bytes(const BatchMember& member) {
    const size_t bytes = kHead + sizeof(Wide) * (size_t{0} + member.cols + member.diagonal()) +
                         sizeof(int32_t) * member.rows;
    return (bytes + kHead - 1) / kHead * kHead;
  }

  // 0 if empty; never NaN.
  CROUT_HOST_DEVICE double* max_abs() const { return reinterpret_cast<double*>(memory_); }
  CROUT_HOST_DEVICE double* norm_one() const { return max_abs() + 1; }
  // z^T A.
  CROUT_HOST_DEVICE Wide* matrix_products() const {
    return reinterpret_cast<Wide*>(memory_ + kHead);
  }
  // (P z)^T L.
  CROUT_HOST_DEVICE Wide* lower_products() const { return matrix_products() + cols_; }
  // rows()[i]: the row of A that is now row i.
  CROUT_HOST_DEVICE int32_t* rows() const {
    return reinterpret_cast<int32_t*>(lower_products() + diagonal_);
  }

 private:
  static constexpr size_t kHead = 16;

  std::byte* memory_;
  int32_t cols_;
  int32_t diagonal_;
};

// A factored batch as the kernels read it. All of it lies in device memory.
template <class T>
struct ProbedBatch {
  T* data = nullptr;
  const BatchMember* members = nullptr;
  std::byte* workspace = nullptr;
  const int64_t* places = nullptr;
};
struct ProbedFactors {
  const int64_t* ipiv = nullptr;
  int32_t* info = nullptr;
  double* pivot_growth = nullptr;
  double* quality = nullptr;
  float* pivot_condition = nullptr;  // null: not requested
};

// `large`: all members that are too large for a block of threads (TeamOf is MemberTeam::kGrid).
template <class T>
cudaError_t LaunchProbeStart(const ProbedBatch<T>& batch, int64_t members, const IrrMembers& large,
                             cudaStream_t stream);
template <class T>
cudaError_t LaunchProbeFinish(const ProbedBatch<T>& batch, const ProbedFactors& factors,
                              int64_t members, const IrrMembers& large, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_PROBE_KERNELS_H_
