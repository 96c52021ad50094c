// Every buffer of a job, decided before it runs: what is reserved and what is allocated are one
// list.
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
  kUpload,  // device memory in which the payload arrived
  kPart,    // device memory that a part of the job allocates itself
  kReport,  // host memory: what an iterative method tells of its run
  kReply,   // host memory: what the job answers with
};

// The phases of a job, counted from 0, in which it holds a buffer.
struct Held {
  static constexpr int kByResult = std::numeric_limits<int>::max();

  int first = 0;
  int last = 0;  // kByResult: it stays with the result
};

struct PlannedBuffer {
  std::string_view name;
  BufferKind kind = BufferKind::kOwn;
  Held held;
  size_t bytes = 0;    // as they are allocated; of a kPart as they are charged
  size_t charged = 0;  // in the sizes in which memory is given out
};

// Bytes of a job, as they are charged. `kept` stays with the result, `peak` is the most of device
// memory in use at any time, the upload and what is kept included; `report` and `reply` are the
// kinds of host memory.
struct JobBytes {
  size_t kept = 0;
  size_t peak = 0;
  size_t report = 0;
  size_t reply = 0;
};

// Made once, then constant. Two names of a plan may mean one buffer: they have the same Id.
class BufferPlan {
 public:
  using Id = size_t;

  // `name` is a literal. Buffers of 0 bytes are allowed, and empty.
  Id Add(std::string_view name, size_t bytes, Held held = {}) {
    return Add(name, BufferKind::kOwn, bytes, held);
  }
  Id Add(std::string_view name, BufferKind kind, size_t bytes, Held held = {});
  // From now on the buffer stays with the result.
  void Keep(Id id) { buffers_[id].held.last = Held::kByResult; }

  // Adds the buffers of a job that this one runs in its phase `phase`, for their bytes alone: that
  // job allocates them. `given`: the one of them that this job has already and gives it.
  void AddJob(const BufferPlan& job, int phase, std::optional<Id> given = std::nullopt);

  std::span<const PlannedBuffer> buffers() const { return buffers_; }
  size_t bytes(Id id) const { return buffers_[id].bytes; }

  // INVALID_ARGUMENT for a sum that overflows.
  absl::StatusOr<JobBytes> Sum() const;

 private:
  std::vector<PlannedBuffer> buffers_;
};

// The buffers of a job that runs by a plan, which outlives it. Destroyed only when no work in
// flight uses them.
class JobBuffers {
 public:
  // May throw std::bad_alloc: an upload that may still be arriving is given after it, by a
  // reference to what outlives the wait for it.
  explicit JobBuffers(const BufferPlan& plan) : plan_(plan), buffers_(plan.buffers().size()) {}

  // Allocates those of kOwn that this phase is the first to hold and were not given.
  // RESOURCE_EXHAUSTED names the one for which there was no memory.
  absl::Status Allocate(MemoryResource& memory, int phase = 0);
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
