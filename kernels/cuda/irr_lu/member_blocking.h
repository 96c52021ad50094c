// SPDX-License-Identifier: Apache-2.0

// Block sizes of a member's elimination. Cuts are at multiples of these sizes from the member's
// first element.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_MEMBER_BLOCKING_H_
#define CROUT_KERNELS_CUDA_IRR_LU_MEMBER_BLOCKING_H_

namespace crout::cuda {

template <class T>
struct MemberBlocking {
  static constexpr bool kWide = sizeof(T) > 8;
  // Columns that are factored one by one, in registers.
  static constexpr int kPanel = kWide ? 8 : 16;
  // Columns after which one product updates the columns to the right.
  static constexpr int kBlock = 2 * kPanel;
  // Columns that are updated at a time, by a block of at least as many threads.
  static constexpr int kChunk = kWide ? 64 : 128;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_MEMBER_BLOCKING_H_
