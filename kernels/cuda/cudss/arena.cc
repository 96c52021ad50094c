#include "kernels/cuda/cudss/arena.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace crout::cuda {

CudssArena::CudssArena(std::span<std::byte> memory) : memory_(memory) {
  MutexLock lock(&mutex_);
  if (!memory.empty()) free_.emplace(0, memory.size());
}

void* CudssArena::Allocate(size_t bytes) {
  if (bytes > memory_.size()) return nullptr;
  const size_t wanted = std::max<size_t>(1, (bytes + kAlignment - 1) / kAlignment) * kAlignment;
  MutexLock lock(&mutex_);
  auto best = free_.end();
  for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
    if (piece->second < wanted) continue;
    if (best == free_.end() || piece->second < best->second) best = piece;
  }
  if (best == free_.end()) return nullptr;
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

}  // namespace crout::cuda
