// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/engine/cache/factor_cache_entry.h"
#include "server/engine/cache/parts_checksum.h"
#include "server/engine/reason.h"

namespace crout {
namespace {

constexpr double kShortestRetrySeconds = 0.1;

absl::Status ExhaustedStatus(const DeviceSlot* slot, size_t bytes, const MemoryBudget& budget) {
  absl::Status status =
      WithReason(absl::ResourceExhaustedError(absl::StrCat(
                     "the job needs ", bytes, " bytes of ",
                     slot != nullptr ? slot->device->info().name : std::string("host"),
                     " memory, which are not free; the budget is ", budget.limit(), " bytes")),
                 kReasonMemoryExhausted);
  if (bytes > budget.limit()) return status;  // Waiting will not help.
  const double backlog = slot != nullptr ? slot->scheduler->load().backlog_seconds : 0;
  return WithRetryAfter(std::move(status), std::max(kShortestRetrySeconds, backlog));
}

}  // namespace

absl::StatusOr<Reservation> FactorCache::ReserveOnDevice(DeviceSlot& slot, size_t bytes) {
  return Reserve(&slot, *slot.budget, ShelfOf(slot), bytes);
}

absl::StatusOr<Reservation> FactorCache::ReserveOnHost(size_t bytes) {
  return Reserve(/*slot=*/nullptr, pool_->host_budget(), kHostShelf, bytes);
}

size_t FactorCache::EvictableBytes(const DeviceSlot& slot) const {
  MutexLock lock(&mutex_);
  return shelves_[ShelfOf(slot)].idle_bytes;
}

absl::Status FactorCache::CheckReachable(DeviceSlot& slot, size_t bytes) const {
  const MemoryBudget& budget = *slot.budget;
  MutexLock lock(&mutex_);
  const size_t idle = shelves_[ShelfOf(slot)].idle_bytes;
  if (budget.limit() - budget.reserved() + idle >= bytes) return absl::OkStatus();
  return ExhaustedStatus(&slot, bytes, budget);
}

absl::StatusOr<Reservation> FactorCache::Reserve(DeviceSlot* slot, MemoryBudget& budget,
                                                 size_t shelf, size_t bytes) {
  if (auto reservation = budget.TryReserve(bytes)) return *std::move(reservation);
  SweepFor(slot);  // What is over goes before what is only old.
  if (shelf == kHostShelf) DropRecords(bytes);
  MutexLock lock(&pressure_[shelf]);
  while (true) {
    if (auto reservation = budget.TryReserve(bytes)) return *std::move(reservation);
    CROUT_ASSIGN_OR_RETURN(const std::shared_ptr<Stored> victim,
                           TakeVictim(slot, budget, shelf, bytes));
    if (victim == nullptr) continue;  // The bytes became free since.
    if (shelf == kHostShelf) {
      Drop(victim);
    } else {
      Demote(victim);
    }
  }
}

void FactorCache::DropRecords(size_t bytes) {
  const MemoryBudget& budget = pool_->host_budget();
  if (bytes > budget.limit()) return;
  std::vector<std::shared_ptr<const IterationRecord>> dropped;
  MutexLock lock(&mutex_);
  size_t free = budget.limit() - budget.reserved();
  // Records that would not make enough room, with the factors that go after them, stay.
  if (free + shelves_[kHostShelf].idle_bytes + record_bytes_ < bytes) return;
  while (free < bytes && !records_.empty()) {
    dropped.push_back(TakeRecordOf(*records_.front()));
    free += dropped.back()->reservation.bytes();
  }
}

absl::StatusOr<std::shared_ptr<FactorCache::Stored>> FactorCache::TakeVictim(
    DeviceSlot* slot, const MemoryBudget& budget, size_t shelf, size_t bytes) {
  MutexLock lock(&mutex_);
  const Shelf& full = shelves_[shelf];
  const size_t reachable = budget.limit() - budget.reserved() + full.idle_bytes;
  if (reachable < bytes) return ExhaustedStatus(slot, bytes, budget);
  if (full.idle.empty()) return nullptr;
  Stored& victim = *full.idle.front();
  Unlist(victim);
  victim.moving = true;
  victim.wanted = false;
  return victim.entry->stored;
}

void FactorCache::Drop(const std::shared_ptr<Stored>& victim) {
  Charged freed;
  MutexLock lock(&mutex_);
  victim->moving = false;
  // Detached since: only its bytes are left to free.
  if (victim->entry != nullptr && !victim->wanted) {
    Remove(victim->entry->handle, Departure::kEvicted);
  }
  freed = Settle(*victim);
}

void FactorCache::Demote(const std::shared_ptr<Stored>& victim) {
  Charged copy;  // Then what is left over: the device's bytes, or the copy when it is not wanted.
  uint64_t checksum = 0;
  const absl::Status copied = CatchBadAlloc([&] { return CopyToHost(*victim, &copy, &checksum); });

  Charged freed;
  MutexLock lock(&mutex_);
  victim->moving = false;
  const bool idle = victim->entry != nullptr && !victim->wanted;
  if (idle && copied.ok()) {
    metrics_->CountCacheEviction(Tier::kDevice, CacheEviction::kPressure);
    Move(*victim, [&] {
      std::swap(victim->reservation, copy.reservation);
      std::swap(victim->factorization.parts, copy.parts);
      victim->checksum = checksum;
      victim->resident = false;
    });
  } else if (idle) {
    const bool lost = !victim->slot->device->healthy();
    Remove(victim->entry->handle, lost ? Departure::kDeviceLost : Departure::kEvicted);
  }
  freed = Settle(*victim);
}

absl::Status FactorCache::CopyToHost(const Stored& from, Charged* to, uint64_t* checksum) {
  if (from.factorization.parts.is_fixed()) {  // asked before others make room for the copy
    return absl::FailedPreconditionError(
        "this factor cannot be copied: it is usable only on its device");
  }
  CROUT_ASSIGN_OR_RETURN(to->reservation, ReserveOnHost(from.bytes));
  {
    DeviceSlot& slot = *from.slot;
    MutexLock lock(&slot.transfer_mutex);
    CROUT_ASSIGN_OR_RETURN(to->parts, crout::CopyToHost(*slot.transfer_context,
                                                        from.factorization.parts, *host_memory_));
  }
  *checksum = PartsChecksum(to->parts);
  return absl::OkStatus();
}

bool FactorCache::IsResident(const Stored& stored) const {
  MutexLock lock(&mutex_);
  return stored.resident;
}

absl::StatusOr<const Factorization*> FactorCache::MakeResident(Stored& stored,
                                                               ExecutionContext& context,
                                                               Reservation room, bool* promoted) {
  *promoted = false;
  // The caller's pin keeps a resident version where it is.
  if (IsResident(stored)) return &stored.factorization;
  MutexLock promotion(&stored.promotion);
  if (IsResident(stored)) return &stored.factorization;
  if (room.bytes() < stored.bytes) {
    return ExhaustedStatus(stored.slot, stored.bytes, *stored.slot->budget);
  }
  Stopwatch stopwatch;
  CROUT_RETURN_IF_ERROR(CheckHostCopy(stored));
  Charged charged;
  CROUT_ASSIGN_OR_RETURN(charged.parts, CopyToDevice(context, stored.factorization.parts));
  room.Shrink(stored.bytes);
  charged.reservation = std::move(room);
  {
    MutexLock lock(&mutex_);
    Move(stored, [&] {
      std::swap(stored.reservation, charged.reservation);
      std::swap(stored.factorization.parts, charged.parts);
      stored.resident = true;
    });
  }
  metrics_->ObservePromotion(stopwatch.Lap());
  *promoted = true;
  return &stored.factorization;
}

absl::StatusOr<bool> FactorCache::ReadIfOnHost(Stored& stored, Pin::ReadParts read) {
  MutexLock promotion(&stored.promotion);
  if (IsResident(stored)) return false;
  CROUT_RETURN_IF_ERROR(CheckHostCopy(stored));
  CROUT_RETURN_IF_ERROR(read(stored.factorization.parts));
  return true;
}

absl::Status FactorCache::CheckHostCopy(Stored& stored) {
  const FactorParts& parts = stored.factorization.parts;
  for (const FactorPart& part : parts) {
    CROUT_RETURN_IF_ERROR(Failpoint("cache.host_copy", {part.buffer.data(), part.buffer.size()}));
  }
  if (PartsChecksum(parts) == stored.checksum) return absl::OkStatus();
  {
    MutexLock lock(&mutex_);
    // The caller's pin keeps its bytes until it goes.
    if (stored.entry != nullptr) Remove(stored.entry->handle, Departure::kDataLoss);
  }
  return WithReason(
      absl::DataLossError(
          "the stored copy of the factor is corrupt and was dropped. Factor the matrix again"),
      kReasonDataLoss);
}

}  // namespace crout
