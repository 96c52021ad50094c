// SPDX-License-Identifier: Apache-2.0

// The functions of FactorCache that write factors to files, and read them back at a start.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/cached_version.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/error.h"

namespace crout {
namespace {

FactorRecord RecordFrom(const InsertOptions& options, absl::Time now) {
  FactorRecord record;
  record.tenant = options.tenant;
  record.name = options.name;
  record.request_id = options.request_id;
  record.lease = options.lease;
  record.create_time = now;
  record.life_end = now + options.life;
  record.durable = options.durable;
  return record;
}

FactorRecord RecordFrom(const HandleTable::Entry& entry) {
  FactorRecord record;
  record.folder = entry.folder;
  record.handle = entry.handle;
  record.tenant = entry.tenant;
  record.name = entry.name;
  record.request_id = entry.request_id;
  record.lease = entry.lease;
  record.create_time = entry.create_time;
  record.life_end = entry.life_end;
  record.durable = entry.stored->durable;
  return record;
}

// Returns the slot of the device that made the factor, or of another device of its kind. Returns
// null if there is none.
DeviceSlot* SlotFor(const DevicePool& pool, const FactorRecord& record) {
  DeviceSlot* of_kind = nullptr;
  for (const auto& slot : pool.slots()) {
    if (slot->device->info().kind != record.device_kind) continue;
    if (slot->device->info().name == record.device) return slot.get();
    if (of_kind == nullptr) of_kind = slot.get();
  }
  return of_kind;
}

}  // namespace

absl::Status FactorCache::CheckDurable(absl::string_view field, std::string_view tenant) const {
  if (files_ == nullptr) {
    return FieldError(absl::StatusCode::kFailedPrecondition, field,
                      "this server has no store for durable factors: leave durable out, or start "
                      "croutd with --store=DIR");
  }
  const absl::Status writable = files_->CheckWritable(tenant);
  if (writable.ok()) return writable;
  return WithRetryAfter(WithReason(writable, kReasonStoreFailed), files_->RetrySeconds());
}

std::optional<FactorRecord> FactorCache::RecordOf(const CachedVersion& version) const {
  const Entry* const entry = handles_.Find(version.handle);
  if (entry == nullptr || !entry->listed) return std::nullopt;
  FactorRecord record = RecordFrom(*entry);
  record.version = version.version;
  record.device_kind = version.slot->device->info().kind;
  record.device = version.slot->device->info().name;
  record.summary = version.factorization.summary;
  record.nnz = version.nnz;
  record.timings = version.timings;
  return record;
}

absl::Status FactorCache::WriteFile(FactorRecord record, NewFactor& factor) {
  record.device_kind = factor.slot->device->info().kind;
  record.device = factor.slot->device->info().name;
  record.summary = factor.factorization.summary;
  record.nnz = factor.nnz;
  record.timings = factor.timings;
  CROUT_ASSIGN_OR_RETURN(Reservation entry, store_.ReserveEntry(record.tenant));
  std::shared_ptr<OverdueWrite> overdue;
  absl::StatusOr<UnclaimedFile> file =
      store_.WriteFile(record, *factor.slot, factor.factorization.parts, &overdue);
  if (overdue != nullptr) overdue->Keep(factor.reservation, factor.factorization.parts);
  CROUT_RETURN_IF_ERROR(file.status());
  factor.written.emplace(WrittenFactor{record.handle, record.version, record.create_time,
                                       std::move(entry), *std::move(file)});
  return absl::OkStatus();
}

absl::Status FactorCache::StoreForInsert(NewFactor& factor, const InsertOptions& options) {
  if (!options.durable) return absl::OkStatus();
  return CatchBadAlloc([&] {
    FactorRecord record = RecordFrom(options, WallNow());
    record.folder = files_->home();
    record.handle = Handle::Random();
    return WriteFile(std::move(record), factor);
  });
}

absl::Status FactorCache::StoreForReplace(NewFactor& factor, std::string_view tenant,
                                          const Handle& handle) {
  return CatchBadAlloc([&]() -> absl::Status {
    FactorRecord record;
    {
      const absl::Time now = WallNow();
      MutexLock lock(&store_.mutex());
      CacheMiss miss;
      const absl::StatusOr<Entry*> entry = Find(tenant, handle, now, &miss);
      if (!entry.ok() || !(*entry)->stored->durable) return absl::OkStatus();
      record = RecordFrom(**entry);
      record.version = ++(*entry)->last_version;
    }
    return WriteFile(std::move(record), factor);
  });
}

void FactorCache::Restore(std::vector<FoundFactor> found, AnalysisStore& analyses) {
  RestoredAnalyses restored;
  // Lists have the newest factors first.
  std::vector<FoundFactor*> sorted;
  for (FoundFactor& factor : found) sorted.push_back(&factor);
  std::stable_sort(sorted.begin(), sorted.end(), [](const FoundFactor* a, const FoundFactor* b) {
    return a->record.create_time < b->record.create_time;
  });
  for (FoundFactor* const next : sorted) {
    FoundFactor& factor = *next;
    const absl::Status status = RestoreOne(factor, analyses, restored);
    if (absl::IsDataLoss(status)) factor.file.MarkDamaged();
    if (absl::IsDataLoss(status) || absl::IsNotFound(status)) {
      factor.file.Discard();
    } else if (!status.ok()) {
      files_->SetAside(std::move(factor.file));
    }
  }
}

void FactorCache::DropFolder(const std::string& folder) {
  std::vector<ChargedMemory> freed;
  {
    MutexLock lock(&store_.mutex());
    const std::vector<Entry*> entries = handles_.All();
    freed.reserve(entries.size());
    for (Entry* const entry : entries) {
      if (entry->folder != folder) continue;
      if (entry->stored->file) {
        freed.push_back(RemoveEntry(*entry->stored, Removal::kMoved));
      } else {
        entry->folder = files_->home();
      }
    }
  }
  Free(std::move(freed), /*slot=*/nullptr);
}

std::set<std::string> FactorCache::Folders() const {
  std::set<std::string> folders;
  MutexLock lock(&store_.mutex());
  for (const Entry* const entry : handles_.All()) folders.insert(entry->folder);
  return folders;
}

absl::StatusOr<std::shared_ptr<const Analysis>> FactorCache::RestoreAnalysis(
    const FoundFactor& found, AnalysisStore& analyses, RestoredAnalyses& restored) {
  const std::string& tenant = found.record.tenant;
  std::weak_ptr<const Analysis>& known = restored[{tenant, found.analysis_id}];
  if (std::shared_ptr<const Analysis> analysis = known.lock()) return analysis;
  std::optional<Reservation> memory = pool_->host_budget().TryReserve(
      found.analysis_bytes, store_.OwnerOnHost(tenant, ShareUse::kCache));
  if (!memory) return absl::ResourceExhaustedError("no memory for the analysis");
  CROUT_ASSIGN_OR_RETURN(Analysis analysis, files_->ReadAnalysis(found.file));
  CachedAnalysis kept = {*std::move(memory), std::move(analysis), /*base=*/nullptr};
  // Fronts for the values of one matrix suit no other matrix of the pattern.
  std::shared_ptr<const Analysis> shared =
      kept.analysis.regrouped ? Share(std::move(kept)) : analyses.Add(tenant, std::move(kept));
  known = shared;
  return shared;
}

absl::Status FactorCache::RestoreOne(FoundFactor& found, AnalysisStore& analyses,
                                     RestoredAnalyses& restored) {
  FactorRecord& record = found.record;
  const absl::Time now = WallNow();
  if (record.life_end <= now) return absl::NotFoundError("the life of the factor has ended");
  auto version = std::make_shared<CachedVersion>();
  version->slot = SlotFor(*pool_, record);
  if (version->slot == nullptr) {
    return absl::FailedPreconditionError("the server has no device of this kind");
  }
  std::optional<Reservation> reservation = pool_->host_budget().TryReserve(
      CachedVersion::kEntryBytes, store_.OwnerOnHost(record.tenant, ShareUse::kCopy));
  if (!reservation) return absl::ResourceExhaustedError("no memory for the entry");
  version->file_entry = *std::move(reservation);
  if (record.summary.sparse) {
    CROUT_ASSIGN_OR_RETURN(record.summary.sparse->analysis,
                           RestoreAnalysis(found, analyses, restored));
  }
  InsertOptions options;
  options.tenant = record.tenant;
  options.name = record.name;
  options.request_id = record.request_id;
  options.lease = record.lease;
  options.life = record.life_end - record.create_time;
  auto entry = std::make_unique<Entry>(options, store_.OpenAccount(record.tenant),
                                       record.create_time, record.handle);
  entry->lease_expire_time =
      std::min(std::max(found.lease_end, now + record.lease), record.life_end);
  entry->last_version = record.version;
  entry->folder = found.file.folder();
  version->handle = record.handle;
  version->version = record.version;
  version->nnz = record.nnz;
  version->timings = record.timings;
  version->has_matrix = found.has_matrix || record.summary.n == 0;
  version->durable = record.durable;
  version->bytes = Charge(found.part_bytes);
  version->bytes_beside_file = BytesBesideFile(record.summary);
  version->factorization.summary = std::move(record.summary);
  version->resident = false;
  version->memory = &store_.file_memory();
  RequestIds::Node request(entry->tenant, entry->request_id);
  RequestIds::EndedClaim ended;  // destroyed after the lock is released
  found.file.SetOwner(store_.OwnerOfFiles(record.tenant));
  MutexLock lock(&store_.mutex());
  // The entry in memory is newer if both exist: this process lost the folder and has it again.
  if (handles_.Find(record.handle) != nullptr) {
    return absl::NotFoundError("the factor is in the cache");
  }
  Entry& added = handles_.Insert(std::move(entry));
  // Nothing can fail from here on.
  ended = request_ids_.Complete(std::move(request), added.handle);
  version->file = std::move(found.file);
  added.stored = std::move(version);
  store_.Attach(*added.stored, added.account);
  return absl::OkStatus();
}

}  // namespace crout
