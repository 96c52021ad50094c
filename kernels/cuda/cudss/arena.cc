// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/cudss/arena.h"

#include <cstdint>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

namespace crout::cuda {
namespace {

// The library also requests pieces of zero bytes. It registers every non-null address, but does not
// find an address registered with zero bytes when it frees the piece, and the phase then fails. So
// a request for zero bytes returns null and succeeds.
int Allocate(void* context, void** memory, size_t bytes, cudaStream_t) {
  *memory = nullptr;
  if (bytes == 0) return 0;
  CudssArena* const arena = *static_cast<CudssArena**>(context);
  if (arena == nullptr) return 1;  // no arena is in use, so there is no memory
  try {
    *memory = arena->Allocate(bytes);
  } catch (const std::bad_alloc&) {  // thrown by the records; reported as null
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
  if (bytes > memory_.size()) {  // rounding a larger value up could overflow
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
  // The only step that can throw; until here nothing has changed.
  if (size > wanted) free_.emplace(begin + wanted, size - wanted);
  auto node = free_.extract(begin);
  node.mapped() = wanted;
  taken_.insert(std::move(node));
  return memory_.data() + begin;
}

bool CudssArena::Free(void* piece) {
  // Computed with integers, because an unknown piece may lie outside `memory_`.
  const size_t begin =
      reinterpret_cast<uintptr_t>(piece) - reinterpret_cast<uintptr_t>(memory_.data());
  MutexLock lock(&mutex_);
  const auto found = taken_.find(begin);
  if (found == taken_.end()) return false;
  auto node = taken_.extract(found);  // reused as the free node, so that Free does not allocate
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

bool CudssArena::ConsumeRefusal() {
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
