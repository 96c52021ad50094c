// Memory that KLU takes for a factor: a block that was reserved for it.
#ifndef CROUT_KERNELS_HOST_KLU_ARENA_H_
#define CROUT_KERNELS_HOST_KLU_ARENA_H_

#include <cstddef>
#include <span>

#include "kernels/stop_requested.h"

namespace crout::host {

// While it lives, everything that SuiteSparse allocates on this thread comes out of `memory`, one
// piece after the other, and null where nothing is left; other threads, and this one before and
// after, use malloc. SuiteSparse's allocator is one for the process: it is replaced when the first
// of these is made, before which no other thread may be inside SuiteSparse (InstallKluArenas).
//
// What was allocated outside of it may be freed inside. One at a time on a thread.
class KluArena {
 public:
  // memory: aligned to 16. `stop` is polled each time the last piece grows, as KLU's factor does by
  // four numbers a column. If it returns true, the growth is refused, which ends the factorization.
  KluArena(std::span<std::byte> memory, StopRequested stop);
  ~KluArena();
  KluArena(const KluArena&) = delete;  // The thread has its address.
  KluArena& operator=(const KluArena&) = delete;

  size_t used() const { return used_; }
  // Whether `stop` returned true.
  bool stopped() const { return stopped_; }

  // As malloc. The piece that was allocated last can be freed and resized; others are when all is.
  void* Allocate(size_t bytes);
  void* Reallocate(void* piece, size_t bytes);
  void Free(void* piece);
  bool Holds(const void* piece) const;

 private:
  const std::span<std::byte> memory_;
  const StopRequested stop_;
  bool stopped_ = false;
  size_t used_ = 0;
  size_t last_ = 0;  // where the last piece begins
};

// Before the first thread that uses SuiteSparse.
void InstallKluArenas();

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_KLU_ARENA_H_
