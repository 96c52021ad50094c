// SPDX-License-Identifier: Apache-2.0

// The cuDSS factors of one device: their device memory, and the library's objects that point to it.
#ifndef CROUT_KERNELS_CUDA_CUDSS_FACTORS_H_
#define CROUT_KERNELS_CUDA_CUDSS_FACTORS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cudss/arena.h"
#include "kernels/cuda/cudss/handle.h"
#include "kernels/cuda/cudss/system.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/memory.h"
#include "kernels/util/mutex.h"

namespace crout::cuda {

// One block and its contents. The job that owns the block writes them; afterwards they are
// constant. `system` is null if nothing was factored in the block yet, or if the order is 0.
struct CudssFactor {
  Buffer block;
  // In this order, because the system returns its memory to the arena.
  std::unique_ptr<CudssArena> arena;
  std::unique_ptr<CudssSystem> system;
  // Bytes of a sufficiently large block, if this block was too small.
  std::optional<size_t> sufficient_bytes;
};

// The memory of cuDSS factors: blocks of device memory, each with the library's objects, which are
// destroyed with it. The objects store the block's address, so a copy of the block elsewhere is
// useless.
class CudssFactors final : public MemoryResource {
 public:
  // `core` and `memory` outlive the object. The handle takes its memory from arenas.
  CudssFactors(DeviceCore& core, MemoryResource& memory, std::unique_ptr<CudssHandle> handle)
      : core_(core), memory_(memory), handle_(std::move(handle)) {}

  ~CudssFactors() override;

  CudssHandle& handle() const { return *handle_; }

  bool is_fixed() const override { return true; }

  // The factor whose block begins at `block`, valid until that block is freed; null if there is
  // none.
  CudssFactor* At(const std::byte* block);

 protected:
  absl::StatusOr<void*> DoAllocate(size_t bytes) override;
  void DoDeallocate(void* data, size_t bytes) override;

 private:
  DeviceCore& core_;
  MemoryResource& memory_;
  const std::unique_ptr<CudssHandle> handle_;
  Mutex mutex_;
  std::unordered_map<const void*, std::unique_ptr<CudssFactor>> factors_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CUDSS_FACTORS_H_
