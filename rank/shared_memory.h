// SPDX-License-Identifier: Apache-2.0

// The memory that the daemon shares with the ranks on its machine.
#ifndef CROUT_RANK_SHARED_MEMORY_H_
#define CROUT_RANK_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rank/memory.h"

namespace crout::rank {

class SharedMemory final : public GroupMemory {
 public:
  // Maps `bytes` bytes of the file that the parent process has open (join_environment.h). Throws
  // std::runtime_error if the system refuses, or the file has another size.
  static std::unique_ptr<SharedMemory> Map(uint64_t bytes);

  void Check(const v1::Part& part) const override;
  void Read(const v1::Part& part, void* to) override;
  void Write(const v1::Part& part, const void* from) override;
  void* Load(const v1::Part& whole) override { return memory_.data() + whole.range().offset(); }
  void Store(const v1::Part& /*whole*/) override {}
  void* Blocks(const v1::Range& workspace, uint64_t offset, uint64_t bytes) override;

 private:
  explicit SharedMemory(std::span<std::byte> memory) : memory_(memory) {}
  bool Contains(const v1::Range& range) const;

  const std::span<std::byte> memory_;
};

}  // namespace crout::rank

#endif  // CROUT_RANK_SHARED_MEMORY_H_
