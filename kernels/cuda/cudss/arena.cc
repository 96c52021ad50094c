#include "kernels/cuda/cudss/arena.h"

#include <cstdint>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

namespace crout::cuda {
namespace {

// The library asks for pieces of no bytes, too, and registers what it gets under its address,
// unless it gets null. An address that it has registered for no bytes it does not find again when
// it gives the piece back, and the phase fails. So there is nothing for nothing, and that is
// success.
int Allocate(void* context, void** memory, size_t bytes, cudaStream_t) {
  *memory = nullptr;
  if (bytes == 0) return 0;
  CudssArena* const arena = *static_cast<CudssArena**>(context);
  if (arena == nullptr) return 1;  // Nothing is the library's own.
  try {
    *memory = arena->Allocate(bytes);
  } catch (const std::bad_alloc&) {  // of the arena's records; the library is not to see it
  }
  return *memory == nullptr ? 1 : 0;
}

int Free(void* context, void* memory, size_t, cudaStream_t) {
  CudssArena* const arena = *static_cast<CudssArena**>(context);
  return memory == nullptr || (arena != nullptr && arena->Free(memory)) ? 0 : 1;
}

}  // namespace

CudssArena::CudssArena(std::span<std::byte> memory) : memory_(memory) {
  MutexLock lock(&mutex_);
  if (!memory.empty()) free_.emplace(0, memory.size());
}

void* CudssArena::Allocate(size_t bytes) {
  MutexLock lock(&mutex_);
  if (bytes > memory_.size()) {  // its rounding could overflow
    refused_ = true;
    return nullptr;
  }
  const size_t wanted = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto best = free_.end();
  for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
    if (piece->second < wanted) continue;
    if (best == free_.end() || piece->second < best->second) best = piece;
  }
  if (best == free_.end()) {
    refused_ = true;
    return nullptr;
  }
  const auto [begin, size] = *best;
  // The only step that takes memory: where it has none, nothing has changed.
  if (size > wanted) free_.emplace(begin + wanted, size - wanted);
  auto node = free_.extract(begin);
  node.mapped() = wanted;
  taken_.insert(std::move(node));
  return memory_.data() + begin;
}

bool CudssArena::Free(void* piece) {
  // By numbers: what was not given out need not lie in `memory_`.
  const size_t begin =
      reinterpret_cast<uintptr_t>(piece) - reinterpret_cast<uintptr_t>(memory_.data());
  MutexLock lock(&mutex_);
  const auto found = taken_.find(begin);
  if (found == taken_.end()) return false;
  auto node = taken_.extract(found);  // becomes a free one: giving back takes no memory
  const auto after = free_.find(node.key() + node.mapped());
  if (after != free_.end()) {
    node.mapped() += after->second;
    free_.erase(after);
  }
  const auto next = free_.lower_bound(node.key());
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == node.key()) {
      before->second += node.mapped();
      return true;
    }
  }
  free_.insert(std::move(node));
  return true;
}

bool CudssArena::TakeRefused() {
  MutexLock lock(&mutex_);
  return std::exchange(refused_, false);
}

CudssMemoryHandler HandlerOf(CudssArena** arena) {
  CudssMemoryHandler handler = {arena, Allocate, Free};
  constexpr char kName[] = "crout";
  std::memcpy(handler.name, kName, sizeof(kName));
  return handler;
}

}  // namespace crout::cuda
