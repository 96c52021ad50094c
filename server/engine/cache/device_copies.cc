// SPDX-License-Identifier: Apache-2.0

// Copies of versions on other devices, over which solves spread (decision 0079).
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "kernels/util/allocation.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/engine/cache/cached_version.h"
#include "server/engine/cache/memory_shares.h"
#include "server/engine/cache/tiered_store.h"
#include "server/engine/error.h"

namespace crout {
namespace {

// Assumed seconds to start a copy: a thread, and memory from the driver. A guess.
constexpr double kCopyStartSeconds = 1e-3;

double CopySeconds(size_t bytes) {
  return kCopyStartSeconds + static_cast<double>(bytes) / kDeviceCopyRate;
}

// Returns the predicted seconds until a job that is submitted now starts.
double WaitOn(const CachedVersion& version) {
  if (!version.slot->device->healthy()) return std::numeric_limits<double>::infinity();
  return version.slot->PredictWait();
}

// Returns true if the device is idle and has free memory for a version.
bool CanTake(const DeviceSlot& slot, const CachedVersion& version) {
  const size_t taken = slot.budget->reserved() + slot.expected.sum().bytes;
  return slot.device->healthy() && taken + version.bytes <= slot.budget->limit() && slot.IsIdle();
}

// Copies all parts from the memory of another device of the same kind. Blocks.
absl::StatusOr<FactorParts> CopyFromPeer(ExecutionContext& context, const FactorParts& from) {
  FactorParts to;
  SyncOnExit sync(context);
  for (const FactorPart& part : from) {
    CROUT_ASSIGN_OR_RETURN(Buffer buffer, context.device().memory().Allocate(part.buffer.size()));
    to.Add(part.name, part.kind, std::move(buffer));
    CROUT_RETURN_IF_ERROR(
        context.ops().CopyOnDevice(part.buffer.data(), to[part.name].data(), part.buffer.size()));
  }
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  sync.Dismiss();
  return to;
}

}  // namespace

class TieredStore::CopyTask final : public Task {
 public:
  CopyTask(TieredStore& store, std::shared_ptr<CachedVersion> version, DeviceSlot& target)
      : store_(store), version_(std::move(version)), target_(target) {}

  void Run() override { store_.RunCopy(*version_, target_); }
  void Drop(absl::Status /*status*/) override { store_.EndCopy(*version_, {}); }

 private:
  TieredStore& store_;
  const std::shared_ptr<CachedVersion> version_;
  DeviceSlot& target_;
};

CachedVersion& TieredStore::ChooseCopy(CachedVersion& version, DeviceSlot** target) {
  const TierMemory& memory = *version.memory;
  if (memory.peers.empty()) return version;
  CachedVersion* best = &version;
  double wait = WaitOn(version);
  int uses = version.pins;
  for (CachedVersion* const copy : version.copies) {
    uses += copy->pins - 1;
    const double here = WaitOn(*copy);
    if (here >= wait) continue;
    best = copy;
    wait = here;
  }
  const bool is_hot = uses > 0 && wait > CopySeconds(version.bytes);
  if (!is_hot || is_copying_ || version.factorization.parts.is_fixed() ||
      !version.slot->device->healthy()) {
    return *best;
  }
  for (const TierMemory* const peer : memory.peers) {
    const bool has_copy = std::ranges::any_of(
        version.copies, [&](const CachedVersion* copy) { return copy->memory == peer; });
    if (has_copy || !CanTake(*peer->slot, version)) continue;
    *target = peer->slot;
    break;
  }
  return *best;
}

void TieredStore::StartCopy(std::shared_ptr<CachedVersion> version, DeviceSlot& target) {
  auto task = std::make_shared<CopyTask>(*this, version, target);
  task->predicted_seconds = CopySeconds(version->bytes);
  {
    MutexLock lock(&mutex_);
    if (is_copying_ || version->account == nullptr || !version->resident) return;
    task->tenant = version->account->tenant();
    version->copies.reserve(version->memory->peers.size());
    is_copying_ = true;
    Pin(*version);
  }
  // If the queue is full, the device is no longer idle.
  const absl::Status queued =
      CatchBadAlloc([&] { return target.admitting->Submit(std::move(task)); });
  if (!queued.ok()) EndCopy(*version, {});
}

void TieredStore::RunCopy(CachedVersion& version, DeviceSlot& target) {
  Stopwatch stopwatch;
  CopyList copy;
  CatchBadAlloc([&]() -> absl::Status {
    CROUT_ASSIGN_OR_RETURN(copy, MakeCopy(version, target));
    return absl::OkStatus();
  }).IgnoreError();  // The solves wait as before, and the next one may try again.
  EndCopy(version, std::move(copy), stopwatch.Lap());
}

absl::StatusOr<TieredStore::CopyList> TieredStore::MakeCopy(const CachedVersion& version,
                                                            DeviceSlot& target) {
  TierMemory& memory = MemoryOf(target);
  std::string tenant;
  {
    MutexLock lock(&mutex_);
    if (version.account == nullptr) return CopyList();
    tenant = version.account->tenant();
  }
  CopyList made;
  made.push_back(std::make_shared<CachedVersion>());
  CachedVersion& copy = *made.front();
  auto reservation =
      memory.budget->TryReserve(version.bytes, OwnerOf(memory, tenant, ShareUse::kCache));
  if (!reservation) return absl::ResourceExhaustedError("no free memory for a copy");
  copy.reservation = *std::move(reservation);
  copy.handle = version.handle;
  copy.version = version.version;
  copy.has_matrix = version.has_matrix;
  copy.bytes = version.bytes;
  copy.slot = &target;
  copy.home = version.slot;
  copy.memory = &memory;
  copy.factorization.summary = version.factorization.summary;
  copy.pins = 1;
  MutexLock lock(&target.transfer_mutex);
  CROUT_ASSIGN_OR_RETURN(copy.factorization.parts,
                         CopyFromPeer(*target.transfer_context, version.factorization.parts));
  return made;
}

void TieredStore::EndCopy(CachedVersion& version, CopyList copy, double seconds) {
  ChargedMemory freed;
  MutexLock lock(&mutex_);
  is_copying_ = false;
  // The contents of a copy from a lost device are not trusted.
  if (!copy.empty() && version.account != nullptr && version.slot->device->healthy()) {
    events_->OnDeviceCopy(seconds);
    CachedVersion& made = *copy.front();
    TierMemory& memory = *made.memory;
    made.original = &version;
    version.copies.push_back(&made);
    memory.copies.splice(memory.copies.end(), copy);
    memory.copy_bytes += made.bytes;
    PublishIdleBytes(memory);
  }
  freed = Unpin(version);
}

void TieredStore::EndCopies(CachedVersion& version) noexcept {
  for (CachedVersion* const copy : version.copies) copy->original = nullptr;
  version.copies.clear();
}

std::vector<ChargedMemory> TieredStore::TakeCopies(
    const DeviceSlot& slot, absl::FunctionRef<bool(const CachedVersion& copy)> chosen) {
  std::vector<ChargedMemory> freed;
  TierMemory& memory = MemoryOf(slot);
  MutexLock lock(&mutex_);
  for (auto it = memory.copies.begin(); it != memory.copies.end();) {
    if (!chosen(**it)) {
      ++it;
      continue;
    }
    ChargedMemory& taken = freed.emplace_back();
    // Destroyed without the lock: a sparse factor's analysis has a reservation (ChargedMemory).
    std::shared_ptr<CachedVersion> copy = std::move(*it);
    it = memory.copies.erase(it);
    memory.copy_bytes -= copy->bytes;
    if (CachedVersion* const original = std::exchange(copy->original, nullptr)) {
      std::erase(original->copies, copy.get());
    }
    taken = Unpin(*copy);
    taken.version = std::move(copy);
  }
  PublishIdleBytes(memory);
  return freed;
}

void TieredStore::DropCopies(TierMemory& memory, const ShareRequest& request) {
  const TenantShare* only = nullptr;  // null: the copies of all tenants
  {
    MutexLock lock(&mutex_);
    if (memory.copies.empty()) return;
    ShareRoom room = RoomFor(memory, request);
    room.free += memory.copy_bytes;
    if (!room.Fits(request.bytes)) return;
    if (!CheckQuotas(memory, request, /*retry_seconds=*/0).ok()) only = &request.owner->share();
  }
  TakeCopies(*memory.slot, [&](const CachedVersion& copy) {
    return only == nullptr || copy.original == nullptr ||
           copy.original->account->share(memory.index) == only;
  }).clear();
}

TierState TieredStore::copies() const {
  TierState state;
  MutexLock lock(&mutex_);
  for (const TierMemory& memory : memories_) {
    state.entries += static_cast<int64_t>(memory.copies.size());
    state.bytes += static_cast<int64_t>(memory.copy_bytes);
  }
  return state;
}

}  // namespace crout
