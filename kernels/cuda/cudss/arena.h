// Device memory that cuDSS takes for a factor: a block that was reserved for it.
#ifndef CROUT_KERNELS_CUDA_CUDSS_ARENA_H_
#define CROUT_KERNELS_CUDA_CUDSS_ARENA_H_

#include <cstddef>
#include <map>
#include <span>

#include "absl/base/thread_annotations.h"
#include "kernels/cuda/cudss/library.h"
#include "kernels/util/mutex.h"

namespace crout::cuda {

// Gives out pieces of `memory`, and takes them back in any order: what is beside each other and
// free is one. Its records lie in host memory; `memory` itself is not touched. Thread-safe.
class CudssArena {
 public:
  // memory: aligned to kAlignment.
  explicit CudssArena(std::span<std::byte> memory);
  CudssArena(const CudssArena&) = delete;  // The library has its address.
  CudssArena& operator=(const CudssArena&) = delete;

  static constexpr size_t kAlignment = 256;

  // Of `bytes` > 0 bytes or more, aligned to kAlignment, from the smallest place that has room;
  // null where none has.
  void* Allocate(size_t bytes);
  // false: `piece` was not given out.
  bool Free(void* piece);

  size_t bytes() const { return memory_.size(); }
  // Whether Allocate gave null since the last call.
  bool TakeRefused();

 private:
  using Pieces = std::map<size_t, size_t>;  // by where they begin, their bytes

  const std::span<std::byte> memory_;
  Mutex mutex_;
  Pieces free_ ABSL_GUARDED_BY(mutex_);  // of which no two touch
  Pieces taken_ ABSL_GUARDED_BY(mutex_);
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;
};

// By which the library takes its memory from **arena, and none where *arena is null: the pointer
// outlives the library's handle, and the arena what was taken from it.
CudssMemoryHandler HandlerOf(CudssArena** arena);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CUDSS_ARENA_H_
