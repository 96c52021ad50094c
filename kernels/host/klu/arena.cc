// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/klu/arena.h"

#include <SuiteSparse_config.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "absl/base/call_once.h"

namespace crout::host {
namespace {

constexpr size_t kAlignment = 16;
constexpr size_t RoundUp(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

thread_local KluArena* arena_of_thread = nullptr;

void* Allocate(size_t bytes) {
  return arena_of_thread != nullptr ? arena_of_thread->Allocate(bytes) : std::malloc(bytes);
}

void* AllocateZeros(size_t count, size_t bytes) {
  if (arena_of_thread == nullptr) return std::calloc(count, bytes);
  if (bytes > 0 && count > SIZE_MAX / bytes) return nullptr;
  void* const piece = arena_of_thread->Allocate(count * bytes);
  if (piece != nullptr) std::memset(piece, 0, count * bytes);
  return piece;
}

void* Reallocate(void* piece, size_t bytes) {
  const bool ours = arena_of_thread != nullptr && arena_of_thread->Holds(piece);
  return ours ? arena_of_thread->Reallocate(piece, bytes) : std::realloc(piece, bytes);
}

void Free(void* piece) {
  const bool ours = arena_of_thread != nullptr && arena_of_thread->Holds(piece);
  ours ? arena_of_thread->Free(piece) : std::free(piece);
}

}  // namespace

void InstallKluArenas() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    SuiteSparse_config.malloc_func = Allocate;
    SuiteSparse_config.calloc_func = AllocateZeros;
    SuiteSparse_config.realloc_func = Reallocate;
    SuiteSparse_config.free_func = Free;
  });
}

KluArena::KluArena(std::span<std::byte> memory, StopRequested stop) : memory_(memory), stop_(stop) {
  assert(arena_of_thread == nullptr);
  InstallKluArenas();
  arena_of_thread = this;
}

KluArena::~KluArena() { arena_of_thread = nullptr; }

void* KluArena::Allocate(size_t bytes) {
  if (bytes > memory_.size() - used_) return nullptr;
  last_ = used_;
  // The next piece starts at an aligned offset, or the arena is full.
  used_ = std::min(used_ + RoundUp(bytes), memory_.size());
  return memory_.data() + last_;
}

void* KluArena::Reallocate(void* piece, size_t bytes) {
  if (stopped_ || stop_()) {
    stopped_ = true;
    return nullptr;
  }
  if (piece != memory_.data() + last_ || bytes > memory_.size() - last_) return nullptr;
  used_ = std::min(last_ + RoundUp(bytes), memory_.size());
  return piece;
}

void KluArena::Free(void* piece) {
  if (piece == memory_.data() + last_) used_ = last_;
}

bool KluArena::Holds(const void* piece) const {
  const std::less_equal<const void*> before;
  return before(memory_.data(), piece) && !before(memory_.data() + memory_.size(), piece);
}

}  // namespace crout::host
