// SPDX-License-Identifier: Apache-2.0

// Moves of versions between the tiers of TieredStore.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/engine/cache/cached_version.h"
#include "server/engine/cache/tiered_store.h"
#include "server/engine/error.h"

namespace crout {
namespace {

// Descriptions of factors in files take at most 1/kShareBesideFiles of the host memory.
constexpr size_t kShareBesideFiles = 8;
// The least such limit.
constexpr size_t kMinBesideFiles = size_t{1} << 20;

}  // namespace

std::optional<ChargedMemory> TieredStore::Rescue(CachedVersion& version) noexcept {
  if (!version.file || version.pins > 0 || version.moving) return std::nullopt;
  ChargedMemory copy;
  copy.slot = version.memory->slot;
  RemoveFromIdle(version);
  Move(version, file_memory(), copy);
  version.resident = false;
  return copy;
}

void TieredStore::Drop(const std::shared_ptr<CachedVersion>& victim, std::string_view tenant) {
  TierCopier* copier = nullptr;
  {
    ChargedMemory freed;
    {
      MutexLock lock(&mutex_);
      copier = victim->memory->copier.get();
      victim->moving = false;
      // If it was detached in the meantime, only its bytes remain to be freed.
      const bool idle = victim->account != nullptr && !victim->used_while_moving;
      freed = idle ? owner_->RemoveEntry(*victim, Removal::kEvicted) : ReleaseIfUnused(*victim);
    }
    // The removal must not wait for other operations of the tenant that loses the factor.
    freed.file.SetAccount(std::string(tenant));
  }
  if (copier != nullptr) copier->AwaitFreed(tenant);
}

void TieredStore::Demote(const std::shared_ptr<CachedVersion>& victim, TierMemory& below,
                         std::string_view tenant) {
  ChargedMemory copy;  // After Move(), the parts from the memory above.
  const absl::Status copied = CatchBadAlloc([&]() -> absl::Status {
    CROUT_ASSIGN_OR_RETURN(copy, CopyBelow(*victim, below, tenant));
    return absl::OkStatus();
  });

  ChargedMemory freed;
  MutexLock lock(&mutex_);
  victim->moving = false;
  const bool idle = victim->account != nullptr && !victim->used_while_moving;
  if (idle && !copied.ok() && !victim->file) {
    const bool lost = IsLost(*victim);
    freed = owner_->RemoveEntry(*victim, lost ? Removal::kDeviceLost : Removal::kEvicted);
    return;
  }
  if (idle) {
    events_->OnEviction(victim->memory->tier, CacheEviction::kPressure);
    Move(*victim, copied.ok() ? below : file_memory(), copy);
    victim->resident = false;
  }
  freed = ReleaseIfUnused(*victim);
}

absl::StatusOr<ChargedMemory> TieredStore::CopyBelow(CachedVersion& from, TierMemory& below,
                                                     std::string_view tenant) {
  if (from.factorization.parts.is_fixed()) {  // checked before other factors make room for the copy
    return absl::FailedPreconditionError(
        "this factor cannot be copied: it is usable only on its device");
  }
  // A use of the version in host memory would otherwise replace the parts during the copy.
  MutexLock promotion(&from.promotion);
  std::string owner;
  std::optional<FactorRecord> record;
  {
    MutexLock lock(&mutex_);
    if (from.account == nullptr || from.used_while_moving) {
      return absl::CancelledError("the factor was used or removed");
    }
    if (from.overdue != nullptr && !from.overdue->ended()) {
      return absl::UnavailableError("an earlier write of the factor has not ended");
    }
    owner = from.account->tenant();
    if (below.tier == Tier::kStore && !from.file) {
      CROUT_RETURN_IF_ERROR(CheckBytesBesideFiles(from.bytes_beside_file));
      record = owner_->RecordOf(from);
    }
  }
  const auto reserve = [&](size_t bytes) {
    return Reserve(below.slot, below, bytes, OwnerOf(below, owner, ShareUse::kCopy), tenant);
  };
  std::shared_ptr<OverdueWrite> overdue;
  absl::StatusOr<ChargedMemory> copy =
      below.copier->CopyIn(from, record ? &*record : nullptr, tenant, reserve, &overdue);
  if (overdue != nullptr) {
    MutexLock lock(&mutex_);
    from.overdue = std::move(overdue);
  }
  return copy;
}

absl::Status TieredStore::CheckBytesBesideFiles(size_t bytes) const {
  const size_t limit = std::max(pool_->host_budget().limit() / kShareBesideFiles, kMinBesideFiles);
  if (bytes_beside_files_ + bytes <= limit) return absl::OkStatus();
  return WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          "the descriptions of factors in the store have ", bytes_beside_files_,
          " bytes of host memory, and the limit is ", limit,
          ": release factors that are no longer needed, or raise the host memory of the server")),
      kReasonStoreFull);
}

absl::StatusOr<UnclaimedFile> TieredStore::WriteFile(const FactorRecord& record, DeviceSlot& slot,
                                                     const FactorParts& parts,
                                                     std::shared_ptr<OverdueWrite>* overdue) {
  if (parts.is_fixed()) {
    return absl::FailedPreconditionError(
        "this factor is usable only on its device and cannot be stored: leave durable out, or "
        "choose another algorithm");
  }
  {
    MutexLock lock(&mutex_);
    CROUT_RETURN_IF_ERROR(CheckBytesBesideFiles(BytesBesideFile(record.summary)));
  }
  auto& copier = static_cast<StoreCopier&>(*file_memory().copier);
  const auto reserve = [&](size_t bytes) {
    return Reserve(/*slot=*/nullptr, file_memory(), bytes, OwnerOf(file_memory(), record.tenant),
                   record.tenant);
  };
  return copier.Write(record, slot, parts, reserve, overdue);
}

bool TieredStore::IsResident(const CachedVersion& version) const {
  MutexLock lock(&mutex_);
  return version.resident;
}

absl::StatusOr<const Factorization*> TieredStore::MakeResident(CachedVersion& version,
                                                               ExecutionContext& context,
                                                               Reservation reservation,
                                                               bool* promoted) {
  *promoted = false;
  // The caller's pin keeps a resident version where it is.
  if (IsResident(version)) return &version.factorization;
  MutexLock promotion(&version.promotion);
  if (IsResident(version)) return &version.factorization;
  if (reservation.bytes() < version.bytes) {
    return ExhaustedStatus(version.slot, version.bytes, *version.slot->budget, /*room=*/{});
  }
  Stopwatch stopwatch;
  ChargedMemory charged;
  CROUT_RETURN_IF_ERROR(FromCopy(version, [&](TierCopier& copier, std::string_view tenant) {
    CROUT_ASSIGN_OR_RETURN(charged.parts, copier.CopyOut(context, version, tenant));
    return absl::OkStatus();
  }));
  reservation.Shrink(version.bytes);
  charged.reservation = std::move(reservation);
  {
    MutexLock lock(&mutex_);
    Move(version, MemoryOf(*version.slot), charged);
    version.resident = true;
  }
  events_->OnPromotion(stopwatch.Lap());
  *promoted = true;
  return &version.factorization;
}

absl::StatusOr<bool> TieredStore::ReadIfOnHost(CachedVersion& version, ReadParts read) {
  MutexLock promotion(&version.promotion);
  if (IsResident(version)) return false;
  CROUT_RETURN_IF_ERROR(FromCopy(version, [&](TierCopier& copier, std::string_view tenant) {
    return copier.Read(version, tenant, read);
  }));
  return true;
}

absl::Status TieredStore::FromCopy(
    CachedVersion& version,
    absl::FunctionRef<absl::Status(TierCopier& copier, std::string_view tenant)> copy) {
  std::string tenant;
  {
    MutexLock lock(&mutex_);
    if (version.account != nullptr) tenant = version.account->tenant();
  }
  absl::Status status = copy(*version.memory->copier, tenant);
  if (!absl::IsDataLoss(status)) return status;
  if (version.memory == &host() && version.file) {
    {
      ChargedMemory corrupt;  // destroyed after the mutex is released
      MutexLock lock(&mutex_);
      Move(version, file_memory(), corrupt);
    }
    status = copy(*version.memory->copier, tenant);
    if (!absl::IsDataLoss(status)) return status;
  }
  {
    MutexLock lock(&mutex_);
    version.file.MarkDamaged();
    // The caller's pin keeps the memory, so there is none to free.
    if (version.account != nullptr) owner_->RemoveEntry(version, Removal::kDataLoss);
  }
  return WithReason(
      absl::DataLossError(
          "the stored copy of the factor is corrupt and was dropped. Factor the matrix again"),
      kReasonDataLoss);
}

}  // namespace crout
