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

// Most calls that may wait for the threads of the store. Further writes are refused.
constexpr size_t kMaxWaiting = 64;
// Most scheduled tasks. Further ends of leases are not recorded.
constexpr size_t kMaxScheduled = 10'000;
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
  return Scan({folder}, threads_, /*whole=*/true, found);
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

void FactorStore::ReadHeaders(std::vector<Candidate>& candidates, ThreadPool& threads) const {
  std::atomic<size_t> next = 0;
  std::latch done(threads.thread_count());
  for (int task = 0; task < threads.thread_count(); ++task) {
    threads.Schedule([&] {
      for (size_t i = next++; i < candidates.size(); i = next++) ReadHeader(candidates[i]);
      done.count_down();
    });
  }
  done.wait();
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
      candidate.found.file = StoredFile(this, std::move(candidate.object), *std::move(reservation));
      found->push_back(std::move(candidate.found));
    } else if (!status.ok() || !objects_->Remove(candidate.object).ok()) {
      ++unusable_;
    }
  }
  return status;
}

absl::Status FactorStore::Run(std::string_view tenant, absl::FunctionRef<absl::Status()> work) {
  return CatchBadAlloc([&] { return RunOnThread(tenant, work); });
}

absl::Status FactorStore::RunOnThread(std::string_view tenant,
                                      absl::FunctionRef<absl::Status()> work) {
  Mutex mutex;
  CondVar ended;
  bool done = false;
  absl::Status status;
  threads_.Schedule(tenant, [&] {
    absl::Status result = CatchBadAlloc(work);
    MutexLock lock(&mutex);
    status = std::move(result);
    done = true;
    ended.Signal();  // The waiting thread leaves only after the lock.
  });
  MutexLock lock(&mutex);
  while (!done) ended.Wait(&mutex);
  return status;
}

absl::Status FactorStore::CheckWritable() const {
  if (threads_.waiting() >= kMaxWaiting) {
    return absl::UnavailableError("too many factors wait to be stored. Try again later");
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

absl::StatusOr<StoredFile> FactorStore::Write(const FactorRecord& record, const FactorImage& image,
                                              Reservation reservation) {
  CROUT_RETURN_IF_ERROR(CheckWritable());
  StoredObject object;
  const absl::Time lease_end = std::min(WallNow() + record.lease, record.life_end);
  const absl::Status status = Run(record.tenant, [&]() -> absl::Status {
    CROUT_ASSIGN_OR_RETURN(
        object, objects_->Put(record.folder, StemOf(record), image.contents(), lease_end));
    return absl::OkStatus();
  });
  if (!status.ok()) {
    // Without the lease of the folder, the write ended before any request, so the next one may
    // start.
    Degrade(status, Holds(record.folder) ? kRetryDelay : std::chrono::seconds(0));
    return status;
  }
  StoredFile file(this, std::move(object), std::move(reservation));
  written_bytes_ += static_cast<int64_t>(image.bytes());
  MutexLock lock(&mutex_);
  failure_.clear();
  return file;
}

absl::StatusOr<FactorFile> FactorStore::OpenObject(const StoredObject& object) const {
  CROUT_ASSIGN_OR_RETURN(std::unique_ptr<ObjectReader> reader, objects_->Open(object));
  return FactorFile::Open(std::move(reader));
}

absl::StatusOr<FactorParts> FactorStore::ReadParts(const StoredFile& file, MemoryResource& memory) {
  FactorParts parts;
  const absl::Status status = Run(/*tenant=*/"", [&]() -> absl::Status {
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
  const absl::Status status = Run(/*tenant=*/"", [&]() -> absl::Status {
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
  {
    MutexLock lock(&mutex_);
    ++discarding_;
  }
  std::shared_ptr<StoredFile> held;
  try {
    held = std::make_shared<StoredFile>();
    *held = std::move(file);
    threads_.Schedule([this, held] { DiscardNow(std::move(*held)); });
  } catch (const std::bad_alloc&) {
    DiscardNow(std::move(held != nullptr ? *held : file));
  }
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
  if (--discarding_ == 0) discarded_.SignalAll();
}

void FactorStore::AwaitDiscards() {
  MutexLock lock(&mutex_);
  while (discarding_ > 0) discarded_.Wait(&mutex_);
}

void FactorStore::SetAside(StoredFile file) {
  ++unusable_;
  MutexLock lock(&mutex_);
  set_aside_.Absorb(std::move(file.reservation_));
}

void FactorStore::SetLeaseEnd(const StoredFile& file, absl::Time end) noexcept {
  if (!file || threads_.waiting() >= kMaxScheduled) return;
  AbandonOnBadAlloc([&] {
    threads_.Schedule(
        [this, object = file.object_, end] { objects_->SetLeaseEnd(object, end).IgnoreError(); });
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
