// SPDX-License-Identifier: Apache-2.0

// The offsets of a workspace's pieces.
#ifndef CROUT_KERNELS_CUDA_ICM_WORKSPACE_LAYOUT_H_
#define CROUT_KERNELS_CUDA_ICM_WORKSPACE_LAYOUT_H_

#include <cstddef>

namespace crout::cuda {

// Places pieces one after the other. Sizes do not overflow for n < 2^21.
class WorkspaceLayout {
 public:
  // Returns the offset of the piece.
  size_t Take(size_t count, size_t size) {
    const size_t offset = total_;
    total_ += (count * size + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }
  size_t total() const { return total_; }

 private:
  static constexpr size_t kAlignment = 256;

  size_t total_ = 0;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_WORKSPACE_LAYOUT_H_
