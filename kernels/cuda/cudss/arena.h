// SPDX-License-Identifier: Apache-2.0

// The device memory that cuDSS uses for one factor: a block reserved for it.
#ifndef CROUT_KERNELS_CUDA_CUDSS_ARENA_H_
#define CROUT_KERNELS_CUDA_CUDSS_ARENA_H_

#include <cstddef>
#include <map>
#include <span>

#include "absl/base/thread_annotations.h"
#include "kernels/cuda/cudss/library.h"
#include "kernels/util/mutex.h"

namespace crout::cuda {

// Allocates pieces of `memory` and frees them in any order; adjacent free pieces are merged. The
// records lie in host memory, and `memory` itself is not accessed. Thread-safe.
class CudssArena {
 public:
  // `memory` is aligned to kAlignment.
  explicit CudssArena(std::span<std::byte> memory);
  CudssArena(const CudssArena&) = delete;  // the library stores its address
  CudssArena& operator=(const CudssArena&) = delete;

  static constexpr size_t kAlignment = 256;

  // Returns at least `bytes` > 0 bytes, aligned to kAlignment, from the smallest free piece that is
  // large enough; null if there is none.
  void* Allocate(size_t bytes);
  // Returns false if `piece` is not allocated.
  bool Free(void* piece);

  size_t bytes() const { return memory_.size(); }
  // Returns whether Allocate has returned null since the last call.
  bool ConsumeRefusal();

 private:
  using Pieces = std::map<size_t, size_t>;  // maps the offset of each piece to its size in bytes

  const std::span<std::byte> memory_;
  Mutex mutex_;
  Pieces free_ ABSL_GUARDED_BY(mutex_);  // never adjacent to each other
  Pieces taken_ ABSL_GUARDED_BY(mutex_);
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;
};

// A handler through which the library takes its memory from **arena, and takes none while *arena is
// null. The pointer must outlive the library's handle, and the arena the memory taken from it.
CudssMemoryHandler HandlerOf(CudssArena** arena);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CUDSS_ARENA_H_
