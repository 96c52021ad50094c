// Where the elimination of a member is cut: at fixed multiples from its own first element.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_MEMBER_BLOCKING_H_
#define CROUT_KERNELS_CUDA_IRR_LU_MEMBER_BLOCKING_H_

namespace crout::cuda {

template <class T>
struct MemberBlocking {
  static constexpr bool kWide = sizeof(T) > 8;
  // Columns that are factored one by one, in registers.
  static constexpr int kPanel = kWide ? 8 : 16;
  // Columns behind which those to the right follow in one product.
  static constexpr int kBlock = 2 * kPanel;
  // Columns that follow at once, by a block of at least as many threads.
  static constexpr int kChunk = kWide ? 64 : 128;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_MEMBER_BLOCKING_H_
