// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/buffer_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/size_class.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

bool OnDevice(BufferKind kind) { return kind != BufferKind::kReport && kind != BufferKind::kReply; }

// Sums the charged bytes of the buffers for which `counts` returns true.
template <class Counts>
absl::StatusOr<size_t> SumIf(std::span<const PlannedBuffer> buffers, Counts counts) {
  ByteSum sum;
  for (const PlannedBuffer& buffer : buffers) {
    if (counts(buffer)) sum.Add(buffer.charged);
  }
  return sum.total();
}

}  // namespace

BufferPlan::Id BufferPlan::Add(std::string_view name, BufferKind kind, size_t bytes,
                               Lifetime lifetime) {
  const bool rounded = kind != BufferKind::kPart && kind != BufferKind::kReport;
  buffers_.push_back({name, kind, lifetime, bytes, rounded ? BlockBytes(bytes) : bytes});
  return buffers_.size() - 1;
}

void BufferPlan::AddJob(const BufferPlan& job, int phase, std::optional<Id> given) {
  for (Id id = 0; id < job.buffers_.size(); ++id) {
    if (id == given) continue;
    PlannedBuffer buffer = job.buffers_[id];
    if (OnDevice(buffer.kind)) buffer.kind = BufferKind::kPart;
    buffer.lifetime.first = phase;
    if (buffer.lifetime.last != Lifetime::kInResult) buffer.lifetime.last = phase;
    buffers_.push_back(buffer);
  }
}

absl::StatusOr<JobBytes> BufferPlan::Sum() const {
  JobBytes bytes;
  const auto of_kind = [&](BufferKind kind) {
    return SumIf(buffers_, [kind](const PlannedBuffer& buffer) { return buffer.kind == kind; });
  };
  CROUT_ASSIGN_OR_RETURN(bytes.report, of_kind(BufferKind::kReport));
  CROUT_ASSIGN_OR_RETURN(bytes.reply, of_kind(BufferKind::kReply));
  CROUT_ASSIGN_OR_RETURN(bytes.kept, SumIf(buffers_, [](const PlannedBuffer& buffer) {
                           return OnDevice(buffer.kind) &&
                                  buffer.lifetime.last == Lifetime::kInResult;
                         }));
  // The peak is in a phase in which a buffer is allocated.
  for (const PlannedBuffer& added : buffers_) {
    const int phase = added.lifetime.first;
    CROUT_ASSIGN_OR_RETURN(const size_t in_use,
                           SumIf(buffers_, [phase](const PlannedBuffer& buffer) {
                             return OnDevice(buffer.kind) && buffer.lifetime.first <= phase &&
                                    phase <= buffer.lifetime.last;
                           }));
    bytes.peak = std::max(bytes.peak, in_use);
  }
  return bytes;
}

absl::Status JobBuffers::Allocate(MemoryResource& memory, int phase) {
  for (BufferPlan::Id id = 0; id < buffers_.size(); ++id) {
    const PlannedBuffer& planned = plan_.buffers()[id];
    const bool is_given = static_cast<bool>(buffers_[id]);
    if (planned.kind != BufferKind::kOwn || planned.lifetime.first != phase || is_given) continue;
    absl::StatusOr<Buffer> buffer = memory.Allocate(planned.bytes);
    if (!buffer.ok()) {
      return {buffer.status().code(),
              absl::StrCat(ToAbsl(planned.name), ": ", buffer.status().message())};
    }
    buffers_[id] = *std::move(buffer);
  }
  return absl::OkStatus();
}

}  // namespace crout
