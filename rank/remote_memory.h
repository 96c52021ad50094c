// SPDX-License-Identifier: Apache-2.0

// The memory of the daemon, for a rank on another machine.
#ifndef CROUT_RANK_REMOTE_MEMORY_H_
#define CROUT_RANK_REMOTE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rank/connection.h"
#include "rank/memory.h"

namespace crout::rank {

// Copies parts by the calls Read and Write. The rank has memory only for the parts that it uses.
class RemoteMemory final : public GroupMemory {
 public:
  // `on_failure` is called with the reason when a copy fails, and must not return: other ranks wait
  // for this one. `connection` must outlive the object.
  RemoteMemory(Connection& connection, std::string token,
               std::function<void(const std::string&)> on_failure)
      : connection_(connection), token_(std::move(token)), on_failure_(std::move(on_failure)) {}

  void Check(const v1::Part& part) const override;
  void Read(const v1::Part& part, void* to) override;
  void Write(const v1::Part& part, const void* from) override;
  void* Load(const v1::Part& whole) override;
  void Store(const v1::Part& whole) override;
  void* Blocks(const v1::Range& workspace, uint64_t offset, uint64_t bytes) override;
  void Begin(uint64_t job) override { job_ = job; }
  void End() override;

 private:
  struct Unmap {
    size_t bytes;
    void operator()(std::byte* data) const;
  };
  using Block = std::unique_ptr<std::byte, Unmap>;

  // Returns zeros, whose pages take memory from their first use.
  Block Allocate(size_t bytes) const;
  v1::Access AccessTo(const v1::Part& part) const;
  // Describes all bytes of the range of a matrix, with its gaps.
  static v1::Part BytesOf(const v1::Part& whole);

  Connection& connection_;
  const std::string token_;
  const std::function<void(const std::string&)> on_failure_;
  uint64_t job_ = 0;
  std::vector<Block> blocks_;
  std::map<uint64_t, Block> loaded_;  // by offset in the group's memory
};

}  // namespace crout::rank

#endif  // CROUT_RANK_REMOTE_MEMORY_H_
