// SPDX-License-Identifier: Apache-2.0

// Memory that the daemon and the ranks of a group on this machine share.
#ifndef CROUT_SERVER_GROUPS_SHARED_ARENA_H_
#define CROUT_SERVER_GROUPS_SHARED_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "kernels/memory/caching_resource.h"
#include "kernels/util/mutex.h"
#include "kernels/util/owned_file.h"

namespace crout {

// One memfd, mapped once, from which blocks are allocated. A page takes memory from its first use
// until its block is released. The memory belongs to the daemon: it survives the loss of ranks and
// ends with the last process that maps it. Thread-safe.
class SharedArena final : public BlockSource {
 public:
  // Reserves `bytes` bytes of address space. RESOURCE_EXHAUSTED if the system refuses.
  static absl::StatusOr<std::unique_ptr<SharedArena>> Create(size_t bytes);
  ~SharedArena() override;
  SharedArena(const SharedArena&) = delete;  // It owns a mapping.
  SharedArena& operator=(const SharedArena&) = delete;

  // Blocks are zero, and aligned to pages.
  absl::StatusOr<void*> Acquire(size_t bytes) override;
  void Release(void* block, size_t bytes) override;

  // Descriptor of the memory, for processes that this process starts.
  int file() const { return file_.get(); }
  size_t size() const { return size_; }
  // Address of an offset that OffsetOf() has returned.
  std::byte* At(uint64_t offset) const { return data_ + offset; }

  // Returns the offset of the range in the memory. INTERNAL if the range is not inside it.
  absl::StatusOr<uint64_t> OffsetOf(const void* data, size_t bytes) const;

 private:
  SharedArena(OwnedFile file, std::byte* data, size_t size);

  const OwnedFile file_;
  std::byte* const data_;
  const size_t size_;
  Mutex mutex_;
  std::map<size_t, size_t> free_ ABSL_GUARDED_BY(mutex_);  // free ranges: offset, bytes
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_SHARED_ARENA_H_
