// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/host_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace crout::host {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;
constexpr size_t kMapFrom = size_t{1} << 20;
constexpr size_t kAlignment = 256;

size_t RoundUpTo(size_t bytes, size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

absl::Status OutOfMemory(size_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot allocate ", bytes, " bytes of host memory"));
}

}  // namespace

absl::StatusOr<void*> HostMemory::Acquire(size_t bytes) {
  if (bytes < kMapFrom) {
    void* block = std::aligned_alloc(kAlignment, RoundUpTo(bytes, kAlignment));
    if (block == nullptr) return OutOfMemory(bytes);
    return block;
  }
  // Map whole pages only, not whole huge pages: the first touch would commit the last huge page in
  // full.
  const size_t used = RoundUpTo(bytes, kPage);
  const size_t mapped = used + kHugePage;  // Slack for alignment.
  void* map = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return OutOfMemory(bytes);
  auto* begin = static_cast<std::byte*>(map);
  const size_t before =
      RoundUpTo(reinterpret_cast<uintptr_t>(begin), kHugePage) - reinterpret_cast<uintptr_t>(begin);
  if (before > 0) munmap(begin, before);
  const size_t after = mapped - before - used;
  if (after > 0) munmap(begin + before + used, after);
  // A failure is harmless: the block works without huge pages.
  madvise(begin + before, used, MADV_HUGEPAGE);
  return begin + before;
}

void HostMemory::Release(void* block, size_t bytes) {
  if (bytes < kMapFrom) {
    std::free(block);
  } else {
    munmap(block, RoundUpTo(bytes, kPage));
  }
}

}  // namespace crout::host
