// SPDX-License-Identifier: Apache-2.0

#include "server/engine/store/factor_store.h"

#include <algorithm>
#include <latch>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"

namespace crout {
namespace {

// Most scheduled tasks. Further ends of leases of a tenant with kMaxWaiting of them are not
// recorded.
constexpr size_t kMaxScheduled = 10'000;
// Removals free space and take little time. The end of a lease is needed only at the next start.
constexpr QueuePriority kRemovalPriority = QueuePriority::kInteractive;
constexpr QueuePriority kLeasePriority = QueuePriority::kBatch;
// Threads that read headers at the start. Most of them wait for the disk or the bucket.
constexpr int kHeaderThreads = 16;

std::string StemOf(const FactorRecord& record) {
  return absl::StrCat(record.handle.ToString(), "-", record.version);
}

// True if a later attempt to read the header may succeed.
bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

}  // namespace

// An object of a factor, while its folder is read.
struct FactorStore::Candidate {
  StoredObject object;
  absl::Status status = {};
  FoundFactor found = {};
};

absl::StatusOr<std::unique_ptr<FactorStore>> FactorStore::Open(std::unique_ptr<ObjectStore> objects,
                                                               const FactorStoreOptions& options,
                                                               std::vector<FoundFactor>* found) {
  size_t max_bytes = options.max_bytes;
  if (max_bytes == 0) {
    CROUT_ASSIGN_OR_RETURN(max_bytes, objects->DefaultLimit());
  }
  const std::vector<std::string> folders = objects->folders();
  std::unique_ptr<FactorStore> store(
      new FactorStore(std::move(objects), options.threads, max_bytes));
  ThreadPool threads(kHeaderThreads);
  const absl::Status status = store->Scan(folders, threads, /*whole=*/false, found);
  if (!status.ok()) {
    found->clear();  // Files must not outlive their store.
    return status;
  }
  return store;
}

FactorStore::FactorStore(std::unique_ptr<ObjectStore> objects, int threads, size_t max_bytes)
    : objects_(std::move(objects)), budget_(max_bytes), threads_(threads) {}

FactorStore::~FactorStore() = default;

absl::Status FactorStore::ReadFolder(const std::string& folder, std::vector<FoundFactor>* found) {
  return Scan({folder}, threads_.pool(), /*whole=*/true, found);
}

absl::Status FactorStore::Scan(const std::vector<std::string>& folders, ThreadPool& threads,
                               bool whole, std::vector<FoundFactor>* found) {
  int64_t unusable = 0;
  int64_t quarantined = 0;
  size_t other_bytes = 0;
  std::vector<Candidate> candidates;
  for (const std::string& folder : folders) {
    CROUT_ASSIGN_OR_RETURN(ObjectList list, objects_->List(folder));
    for (StoredObject& object : list.objects) candidates.push_back({.object = std::move(object)});
    other_bytes += list.other_bytes + list.quarantined_bytes;
    unusable += list.others;
    quarantined += list.quarantined;
  }
  ReadHeaders(candidates, threads);
  for (const Candidate& candidate : candidates) {
    if (whole && IsTransient(candidate.status)) return candidate.status;
  }
  unusable_ += unusable;
  quarantined_ += quarantined;
  // The newest version of a factor comes first.
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    const FactorRecord& one = a.found.record;
    const FactorRecord& other = b.found.record;
    return one.handle != other.handle ? one.handle < other.handle : one.version > other.version;
  });
  std::vector<Candidate> usable;
  for (Candidate& candidate : candidates) {
    if (candidate.status.ok()) {
      const bool is_older =
          !usable.empty() && usable.back().found.record.handle == candidate.found.record.handle;
      if (!is_older) {
        usable.push_back(std::move(candidate));
      } else if (!objects_->Remove(candidate.object).ok()) {
        other_bytes += candidate.object.charged;
        ++unusable_;
      }
      continue;
    }
    other_bytes += candidate.object.charged;
    const bool damaged = absl::IsDataLoss(candidate.status);
    ++(damaged && objects_->Quarantine(candidate.object).ok() ? quarantined_ : unusable_);
  }
  return Charge(usable, other_bytes, found);
}

struct FactorStore::HeaderReads {
  std::vector<Candidate>& candidates;
  ThreadPool& threads;
  std::latch done;
  std::atomic<size_t> next = 0;
};

void FactorStore::ReadHeaders(std::vector<Candidate>& candidates, ThreadPool& threads) const {
  HeaderReads reads{candidates, threads, std::latch(threads.thread_count())};
  for (int task = 0; task < threads.thread_count(); ++task) {
    if (!ScheduleHeader(reads)) ReadNextHeaders(reads);
  }
  reads.done.wait();
}

bool FactorStore::ScheduleHeader(HeaderReads& reads) const {
  try {
    reads.threads.Schedule(
        "", [this, &reads] { ReadNextHeaders(reads); }, StoreThreads::kOperationCost);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void FactorStore::ReadNextHeaders(HeaderReads& reads) const {
  for (size_t i = reads.next++; i < reads.candidates.size(); i = reads.next++) {
    ReadHeader(reads.candidates[i]);
    if (ScheduleHeader(reads)) return;  // The work of tenants has its turns between two headers.
  }
  reads.done.count_down();
}

void FactorStore::ReadHeader(Candidate& candidate) const {
  candidate.status = CatchBadAlloc([&]() -> absl::Status {
    CROUT_ASSIGN_OR_RETURN(const FactorFile file, OpenObject(candidate.object));
    if (StemOf(file.record()) != candidate.object.stem) {
      return absl::DataLossError("the file has the name of another factor");
    }
    FoundFactor& found = candidate.found;
    found.record = file.record();
    found.lease_end = candidate.object.lease_end;
    found.part_bytes = file.part_bytes();
    found.analysis_bytes = file.analysis_bytes();
    found.analysis_id = file.analysis_id();
    found.has_matrix = file.has_matrix();
    return absl::OkStatus();
  });
}

absl::Status FactorStore::Charge(std::vector<Candidate>& candidates, size_t other_bytes,
                                 std::vector<FoundFactor>* found) {
  // Durable factors first, then those whose leases end last.
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return std::pair(a.found.record.durable, a.found.lease_end) >
           std::pair(b.found.record.durable, b.found.lease_end);
  });
  absl::Status status;
  const auto exceed = [&](size_t bytes) {
    status.Update(absl::FailedPreconditionError(absl::StrCat(
        "--store: the durable factors and the files that are not in use exceed the limit of ",
        budget_.limit(), " bytes by at least ", bytes,
        " bytes: raise --max-store-bytes, or remove damaged files from the quarantine")));
  };
  if (std::optional<Reservation> others = budget_.TryReserve(other_bytes)) {
    MutexLock lock(&mutex_);
    set_aside_.Absorb(*std::move(others));
  } else {
    exceed(budget_.reserved() + other_bytes - budget_.limit());
  }
  for (Candidate& candidate : candidates) {
    std::optional<Reservation> reservation = budget_.TryReserve(candidate.object.charged);
    if (!reservation && candidate.found.record.durable) {
      exceed(budget_.reserved() + candidate.object.charged - budget_.limit());
    }
    if (reservation) {
      candidate.found.file = StoredFile(this, candidate.found.record.tenant,
                                        std::move(candidate.object), *std::move(reservation));
      found->push_back(std::move(candidate.found));
    } else if (!status.ok() || !objects_->Remove(candidate.object).ok()) {
      ++unusable_;
    }
  }
  return status;
}

size_t FactorStore::waiting(std::string_view tenant) const {
  return threads_.pool().waiting(tenant, StoreThreads::kCallPriority);
}

absl::Status FactorStore::CheckWritable(std::string_view tenant) const {
  if (const size_t calls = waiting(tenant); calls >= kMaxWaiting) {
    return absl::UnavailableError(absl::StrCat(calls,
                                               " calls of this tenant wait for the store, and the "
                                               "limit is ",
                                               kMaxWaiting, ". Try again later"));
  }
  if (threads_.all_hang()) {
    return absl::UnavailableError(
        "factors cannot be stored at present: the storage does not respond. Try again later, or "
        "request a factor that is not durable");
  }
  MutexLock lock(&mutex_);
  if (failure_.empty() || SteadyNow() >= retry_time_) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("factors cannot be stored at present: ", failure_, ". Try again in ",
                   std::chrono::ceil<std::chrono::seconds>(retry_time_ - SteadyNow()).count(),
                   " s, or request a factor that is not durable"));
}

double FactorStore::RetrySeconds() const {
  MutexLock lock(&mutex_);
  return std::max(1.0, std::chrono::duration<double>(retry_time_ - SteadyNow()).count());
}

void FactorStore::Degrade(const absl::Status& status, std::chrono::seconds delay) {
  ++failed_writes_;
  MutexLock lock(&mutex_);
  failure_ = std::string(status.message());
  retry_time_ = SteadyNow() + delay;
}

absl::StatusOr<StoredFile> FactorStore::Write(const FactorRecord& record, std::string_view account,
                                              FactorImage image, Reservation reservation,
                                              std::shared_ptr<OverdueWrite>* overdue) {
  CROUT_RETURN_IF_ERROR(CheckWritable(account));
  // Owns the memory of the write. A file that is complete after the end of its call is discarded.
  struct Job {
    FactorRecord record;
    FactorImage image;
    Reservation reservation;
    absl::Time lease_end;
    UnclaimedFile file = {};
  };
  const size_t bytes = image.bytes();
  const auto job = std::make_shared<Job>(Job{record, std::move(image), std::move(reservation),
                                             std::min(WallNow() + record.lease, record.life_end)});
  const absl::Status status = threads_.Write(
      account, bytes,
      [this, job]() -> absl::Status {
        const FactorRecord& written = job->record;
        CROUT_ASSIGN_OR_RETURN(
            StoredObject object,
            objects_->Put(written.folder, StemOf(written), job->image.contents(), job->lease_end));
        job->file = UnclaimedFile(
            StoredFile(this, written.tenant, std::move(object), std::move(job->reservation)));
        return absl::OkStatus();
      },
      overdue);
  if (!status.ok()) {
    // Without the lease of the folder, the write ended before any request, so the next one may
    // start.
    Degrade(status, Holds(record.folder) ? kRetryDelay : std::chrono::seconds(0));
    return status;
  }
  written_bytes_ += static_cast<int64_t>(bytes);
  MutexLock lock(&mutex_);
  failure_.clear();
  return job->file.Claim();
}

absl::StatusOr<FactorFile> FactorStore::OpenObject(const StoredObject& object) const {
  CROUT_ASSIGN_OR_RETURN(std::unique_ptr<ObjectReader> reader, objects_->Open(object));
  return FactorFile::Open(std::move(reader));
}

absl::StatusOr<FactorParts> FactorStore::ReadParts(const StoredFile& file, MemoryResource& memory) {
  FactorParts parts;
  const absl::Status status =
      threads_.Read(file.account_, file.object_.bytes, [&]() -> absl::Status {
        CROUT_ASSIGN_OR_RETURN(const FactorFile opened, OpenObject(file.object_));
        CROUT_ASSIGN_OR_RETURN(parts, opened.ReadParts(memory));
        return absl::OkStatus();
      });
  if (absl::IsUnavailable(status)) ++failed_reads_;
  CROUT_RETURN_IF_ERROR(status);
  read_bytes_ += static_cast<int64_t>(parts.bytes());
  return parts;
}

absl::StatusOr<Analysis> FactorStore::ReadAnalysis(const StoredFile& file) {
  Analysis analysis;
  const absl::Status status =
      threads_.Read(file.account_, file.object_.bytes, [&]() -> absl::Status {
        CROUT_ASSIGN_OR_RETURN(const FactorFile opened, OpenObject(file.object_));
        CROUT_ASSIGN_OR_RETURN(analysis, opened.ReadAnalysis());
        return absl::OkStatus();
      });
  if (absl::IsUnavailable(status)) ++failed_reads_;
  CROUT_RETURN_IF_ERROR(status);
  return analysis;
}

void StoredFile::Discard() noexcept {
  if (*this) store_->Discard(std::move(*this));
}

void FactorStore::Discard(StoredFile file) noexcept {
  try {
    const auto held = std::make_shared<StoredFile>();
    ThreadPool::Task task = [this, held] {
      const std::string account = std::move(held->account_);
      DiscardNow(std::move(*held));
      EndDiscard(account);
    };
    ThreadPool::Node place(file.account_);
    Discards node;
    node.try_emplace(file.account_, 0);
    // Nothing can fail from here on.
    CountDiscard(node.extract(node.begin()));
    *held = std::move(file);
    threads_.pool().Schedule(std::move(place), std::move(task), StoreThreads::kOperationCost,
                             kRemovalPriority);
  } catch (const std::bad_alloc&) {
    DiscardNow(std::move(file));
  }
}

void FactorStore::CountDiscard(Discards::node_type node) noexcept {
  MutexLock lock(&mutex_);
  ++discarding_.insert(std::move(node)).position->second;
}

void FactorStore::EndDiscard(const std::string& account) noexcept {
  MutexLock lock(&mutex_);
  const auto found = discarding_.find(account);
  if (--found->second > 0) return;
  discarding_.erase(found);
  discarded_.SignalAll();
}

void FactorStore::DiscardNow(StoredFile file) noexcept {
  // A file that cannot be removed stays charged, and the next start reads it again.
  const absl::Status status =
      file.damaged_ ? objects_->Quarantine(file.object_) : objects_->Remove(file.object_);
  const bool removed = absl::IsAborted(status) || (status.ok() && !file.damaged_);
  if (!removed) ++(status.ok() ? quarantined_ : unusable_);
  // The owner's functions are called without the mutex.
  if (removed) {
    file.reservation_.Release();
  } else {
    file.reservation_.SetOwner(nullptr);
  }
  MutexLock lock(&mutex_);
  set_aside_.Absorb(std::move(file.reservation_));
}

void FactorStore::AwaitDiscards() {
  MutexLock lock(&mutex_);
  while (!discarding_.empty()) discarded_.Wait(&mutex_);
}

void FactorStore::AwaitDiscards(std::string_view account) {
  MutexLock lock(&mutex_);
  while (discarding_.find(account) != discarding_.end()) discarded_.Wait(&mutex_);
}

void FactorStore::SetAside(StoredFile file) {
  ++unusable_;
  MutexLock lock(&mutex_);
  set_aside_.Absorb(std::move(file.reservation_));
}

void FactorStore::SetLeaseEnd(const StoredFile& file, absl::Time end) noexcept {
  ThreadPool& pool = threads_.pool();
  if (!file || (pool.waiting() >= kMaxScheduled &&
                pool.waiting(file.account_, kLeasePriority) >= kMaxWaiting)) {
    return;
  }
  AbandonOnBadAlloc([&] {
    pool.Schedule(
        file.account_,
        [this, object = file.object_, end] { objects_->SetLeaseEnd(object, end).IgnoreError(); },
        StoreThreads::kOperationCost, kLeasePriority);
  });
}

StoreState FactorStore::state() const {
  StoreState state;
  state.limit_bytes = static_cast<int64_t>(budget_.limit());
  state.used_bytes = static_cast<int64_t>(budget_.reserved());
  state.quarantined = quarantined_;
  state.unusable = unusable_;
  state.written_bytes = written_bytes_;
  state.read_bytes = read_bytes_;
  state.failed_writes = failed_writes_;
  state.failed_reads = failed_reads_;
  MutexLock lock(&mutex_);
  state.reason = failure_;
  state.degraded = !failure_.empty();
  return state;
}

}  // namespace crout
