// SPDX-License-Identifier: Apache-2.0

#include "server/groups/shared_arena.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace crout {
namespace {

constexpr size_t kPage = 4096;

size_t WholePages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

absl::Status Refused(const char* call, size_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("shared memory of ", bytes, " bytes: ", call, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedArena>> SharedArena::Create(size_t bytes) {
  bytes = WholePages(bytes);
  OwnedFile file(memfd_create("crout-group", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0) return Refused("memfd_create", bytes);
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return Refused("ftruncate", bytes);
  // Without the seals a rank could truncate the file, and the daemon's next access would fail.
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Refused("fcntl", bytes);
  }
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (data == MAP_FAILED) return Refused("mmap", bytes);
  return std::unique_ptr<SharedArena>(
      new SharedArena(std::move(file), static_cast<std::byte*>(data), bytes));
}

SharedArena::SharedArena(OwnedFile file, std::byte* data, size_t size)
    : file_(std::move(file)), data_(data), size_(size), free_{{0, size}} {}

SharedArena::~SharedArena() { munmap(data_, size_); }

absl::StatusOr<void*> SharedArena::Acquire(size_t bytes) {
  bytes = WholePages(bytes);
  MutexLock lock(&mutex_);
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [offset, length] = *range;
    if (length < bytes) continue;
    // The end of the range is taken, so that its node remains valid.
    range->second = length - bytes;
    if (range->second == 0) free_.erase(range);
    return data_ + offset + length - bytes;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot allocate ", bytes, " bytes in the shared memory of ", size_, " bytes"));
}

void SharedArena::Release(void* block, size_t bytes) {
  bytes = WholePages(bytes);
  const auto offset = static_cast<size_t>(static_cast<std::byte*>(block) - data_);
  // Returns the pages to the system. It cannot fail for a range of this file.
  fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
  MutexLock lock(&mutex_);
  auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      if (next != free_.end() && offset + bytes == next->first) {
        before->second += next->second;
        free_.erase(next);
      }
      return;
    }
  }
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    free_.erase(next);
  }
  free_.emplace(offset, bytes);
}

absl::StatusOr<uint64_t> SharedArena::OffsetOf(const void* data, size_t bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(data_);
  const auto at = reinterpret_cast<uintptr_t>(data);
  if (at < begin || at - begin > size_ || bytes > size_ - (at - begin)) {
    return absl::InternalError("a matrix of a group is not in its shared memory");
  }
  return at - begin;
}

}  // namespace crout
