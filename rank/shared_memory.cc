// SPDX-License-Identifier: Apache-2.0

#include "rank/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "rank/join_environment.h"
#include "rank/part.h"

namespace crout::rank {

std::unique_ptr<SharedMemory> SharedMemory::Map(uint64_t bytes) {
  const std::string path =
      "/proc/" + std::to_string(getppid()) + "/fd/" + std::to_string(kMemoryDescriptor);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat state;
  if (file < 0 || fstat(file, &state) != 0) {
    throw std::runtime_error("cannot open the group's memory, " + path + ": " + strerror(errno));
  }
  if (!S_ISREG(state.st_mode) || static_cast<uint64_t>(state.st_size) != bytes) {
    throw std::runtime_error(path + " is not the group's memory of " + std::to_string(bytes) +
                             " bytes");
  }
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (data == MAP_FAILED) {
    throw std::runtime_error("cannot map the group's memory: " + std::string(strerror(errno)));
  }
  close(file);
  return std::unique_ptr<SharedMemory>(new SharedMemory({static_cast<std::byte*>(data), bytes}));
}

bool SharedMemory::Contains(const v1::Range& range) const {
  return range.offset() <= memory_.size() && range.bytes() <= memory_.size() - range.offset();
}

void SharedMemory::Check(const v1::Part& part) const {
  if (!Contains(part.range()) || !PartRanges::Of(part)) {
    Refuse("a matrix ends outside its range or the shared memory of " +
           std::to_string(memory_.size()) + " bytes");
  }
}

void SharedMemory::Read(const v1::Part& part, void* to) {
  PartRanges ranges = *PartRanges::Of(part);
  auto* next = static_cast<std::byte*>(to);
  for (auto range = ranges.Take(SIZE_MAX); range.bytes > 0; range = ranges.Take(SIZE_MAX)) {
    std::memcpy(next, memory_.data() + range.offset, range.bytes);
    next += range.bytes;
  }
}

void SharedMemory::Write(const v1::Part& part, const void* from) {
  PartRanges ranges = *PartRanges::Of(part);
  const auto* next = static_cast<const std::byte*>(from);
  for (auto range = ranges.Take(SIZE_MAX); range.bytes > 0; range = ranges.Take(SIZE_MAX)) {
    std::memcpy(memory_.data() + range.offset, next, range.bytes);
    next += range.bytes;
  }
}

void* SharedMemory::Blocks(const v1::Range& workspace, uint64_t offset, uint64_t bytes) {
  if (!Contains(workspace) || offset > workspace.bytes() || bytes > workspace.bytes() - offset) {
    Refuse("the workspace is too small, or outside the shared memory");
  }
  return memory_.data() + workspace.offset() + offset;
}

}  // namespace crout::rank
