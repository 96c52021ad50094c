// The factors that cuDSS has on one device: what lies in device memory, and the library's objects
// that point there.
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

// One block, and what is in it: written by the job that has the block, then constant. Null systems
// are of blocks in which nothing was factored yet, and of order 0.
struct CudssFactor {
  Buffer block;
  // In this order: the system gives its memory back to the arena.
  std::unique_ptr<CudssArena> arena;
  std::unique_ptr<CudssSystem> system;
  // Bytes of a block that is large enough for what did not go into this one.
  std::optional<size_t> wanted;
};

// The memory of such factors: blocks of the device's memory, each with the library's objects beside
// it, which end with it. They know where the block is, so that a copy elsewhere is of no use.
class CudssFactors final : public MemoryResource {
 public:
  // `core` and `memory` outlive it. The handle takes its memory from arenas.
  CudssFactors(DeviceCore& core, MemoryResource& memory, std::unique_ptr<CudssHandle> handle)
      : core_(core), memory_(memory), handle_(std::move(handle)) {}

  ~CudssFactors() override;

  CudssHandle& handle() const { return *handle_; }

  bool is_fixed() const override { return true; }

  // Of the block that begins there, as long as that lives; null where none does.
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
