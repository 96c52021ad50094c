// SPDX-License-Identifier: Apache-2.0

// The list of a job's buffers, fixed before it runs and used for both reservation and allocation.
#ifndef CROUT_KERNELS_JOBS_BUFFER_PLAN_H_
#define CROUT_KERNELS_JOBS_BUFFER_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/memory.h"

namespace crout {

enum class BufferKind : uint8_t {
  kOwn,     // device memory that the job allocates
  kUpload,  // device memory that received the payload
  kPart,    // device memory that a part of the job allocates itself
  kReport,  // host memory for the report of an iterative method
  kReply,   // host memory for the reply
};

// Range of the job's phases, counted from 0, in which a buffer is held.
struct Lifetime {
  static constexpr int kInResult = std::numeric_limits<int>::max();

  int first = 0;
  int last = 0;  // kInResult: the buffer becomes part of the result
};

struct PlannedBuffer {
  std::string_view name;
  BufferKind kind = BufferKind::kOwn;
  Lifetime lifetime;
  size_t bytes = 0;    // allocated bytes; for a kPart the charged bytes
  size_t charged = 0;  // charged bytes; rounded up to a block size, except kPart and kReport
};

// Bytes of a job, as charged. `kept` stays with the result. `peak` is the largest device memory in
// use at any time, including upload and kept buffers. `report` and `reply` are host memory.
struct JobBytes {
  size_t kept = 0;
  size_t peak = 0;
  size_t report = 0;
  size_t reply = 0;
};

// Built once, then constant. Two names in a job's plan may have the same Id and share a buffer.
class BufferPlan {
 public:
  using Id = size_t;

  // `name` is a string literal. A buffer of 0 bytes is allowed and stays empty.
  Id Add(std::string_view name, size_t bytes, Lifetime lifetime = {}) {
    return Add(name, BufferKind::kOwn, bytes, lifetime);
  }
  Id Add(std::string_view name, BufferKind kind, size_t bytes, Lifetime lifetime = {});
  // Makes the buffer part of the result.
  void Keep(Id id) { buffers_[id].lifetime.last = Lifetime::kInResult; }

  // Adds the buffers of `job`, which runs within phase `phase` of this job. Only their bytes count
  // here; `job` allocates them. `given` is the buffer of `job` that this job owns and passes to it.
  void AddJob(const BufferPlan& job, int phase, std::optional<Id> given = std::nullopt);

  std::span<const PlannedBuffer> buffers() const { return buffers_; }
  size_t bytes(Id id) const { return buffers_[id].bytes; }

  // INVALID_ARGUMENT if a sum overflows.
  absl::StatusOr<JobBytes> Sum() const;

 private:
  std::vector<PlannedBuffer> buffers_;
};

// The buffers of a running job. The plan must outlive them. Must not be destroyed while work in
// flight uses them.
class JobBuffers {
 public:
  // May throw std::bad_alloc. Therefore give an upload that may still be arriving only after
  // construction: its owner must outlive the wait for it.
  explicit JobBuffers(const BufferPlan& plan) : plan_(plan), buffers_(plan.buffers().size()) {}

  // Allocates the kOwn buffers that are first held in `phase`, except those already given.
  // RESOURCE_EXHAUSTED, with the name of the buffer, if memory is short.
  absl::Status Allocate(MemoryResource& memory, int phase = 0);
  // Supplies buffer `id`, which Allocate then skips.
  void Give(BufferPlan::Id id, Buffer buffer) { buffers_[id] = std::move(buffer); }
  Buffer Take(BufferPlan::Id id) { return std::move(buffers_[id]); }

  const Buffer& operator[](BufferPlan::Id id) const { return buffers_[id]; }
  std::span<std::byte> Span(BufferPlan::Id id) const {
    return {buffers_[id].data(), buffers_[id].size()};
  }

 private:
  const BufferPlan& plan_;
  std::vector<Buffer> buffers_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_BUFFER_PLAN_H_
