// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/payload_step.h"

#include "absl/strings/str_cat.h"

namespace crout {
namespace {

// Memory that buffers use and do not own.
class BorrowedMemory final : public MemoryResource {
  absl::StatusOr<void*> DoAllocate(size_t bytes) override {
    return absl::InternalError(absl::StrCat("borrowed memory has no ", bytes, " bytes"));
  }
  void DoDeallocate(void*, size_t) override {}
};

}  // namespace

absl::StatusOr<Buffer> PayloadStep::AllocateReply(size_t bytes) {
  const SharedRegions::Region& region = reply_memory_.region;
  if (region == nullptr || region->device() != slot_.device.get() || bytes == 0 ||
      bytes > reply_memory_.bytes.size()) {
    return engine_.host_memory.Allocate(bytes);
  }
  static BorrowedMemory borrowed;
  return Buffer(&borrowed, reply_memory_.bytes.data(), bytes);
}

NewFactor PayloadStep::MakeNewFactor(Factorization made, double seconds) {
  NewFactor factor;
  factor.factorization = std::move(made);
  engine_.events.OnFactor(slot_, factor.factorization.summary, seconds);
  factor.reservation = std::move(memory_.device);
  factor.slot = &slot_;
  return factor;
}

std::shared_ptr<const ReplyData> PayloadStep::MakeReplyData(Buffer out, size_t bytes) {
  memory_.host.Shrink(bytes);
  return std::make_shared<const ReplyData>(ReplyData{std::move(memory_.host), std::move(out)});
}

void ShrinkToFactor(NewFactor& factor) {
  factor.reservation.Shrink(FactorCache::Charge(factor.factorization.parts.bytes()));
}

FactorInfo DescribeDropped(NewFactor factor) {
  FactorInfo info;
  info.summary = std::move(factor.factorization.summary);
  info.record = std::move(factor.record);
  info.device = factor.slot->device->info().name;
  info.nnz = factor.nnz;
  info.timings = factor.timings;
  return info;
}

}  // namespace crout
