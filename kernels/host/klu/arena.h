// SPDX-License-Identifier: Apache-2.0

// Memory arena for KLU: allocates a factor from a reserved block.
#ifndef CROUT_KERNELS_HOST_KLU_ARENA_H_
#define CROUT_KERNELS_HOST_KLU_ARENA_H_

#include <cstddef>
#include <span>

#include "kernels/stop_requested.h"

namespace crout::host {

// While an arena exists, SuiteSparse's allocations on its thread come from `memory`, in sequence,
// and fail when it is used up. Other threads, and this thread at other times, use malloc.
// SuiteSparse has one allocator per process. The first arena replaces it; no other thread may be
// inside SuiteSparse before that (InstallKluArenas).
//
// Memory allocated outside the arena may be freed inside. A thread can have one arena at a time.
class KluArena {
 public:
  // `memory` is aligned to 16. `stop` is polled each time the last piece grows; KLU's factor grows
  // by four numbers a column. If `stop` returns true, the growth is refused, which ends the
  // factorization.
  KluArena(std::span<std::byte> memory, StopRequested stop);
  ~KluArena();
  KluArena(const KluArena&) = delete;  // The thread stores its address.
  KluArena& operator=(const KluArena&) = delete;

  size_t used() const { return used_; }
  // Returns true once `stop` has returned true.
  bool stopped() const { return stopped_; }

  // Like malloc, realloc and free. Only the last piece can be freed or resized; the others are
  // freed with the arena.
  void* Allocate(size_t bytes);
  void* Reallocate(void* piece, size_t bytes);
  void Free(void* piece);
  bool Holds(const void* piece) const;

 private:
  const std::span<std::byte> memory_;
  const StopRequested stop_;
  bool stopped_ = false;
  size_t used_ = 0;
  size_t last_ = 0;  // start of the last piece
};

// Call before the first thread uses SuiteSparse.
void InstallKluArenas();

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_KLU_ARENA_H_
