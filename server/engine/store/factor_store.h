// SPDX-License-Identifier: Apache-2.0

// Stored factors with a budget of bytes. Each version of a factor is a file (factor_file.h): an
// object of an ObjectStore, with the stem HANDLE-VERSION. There is no other index: the start of a
// process reads all headers.
//
// The threads of the store divide their work among tenants by bytes (decision 0066). Each operation
// is charged to a tenant, and waits only for operations that are in progress and for its turn.
//
// After a write has failed, or has not ended within its time limit (store_threads.h), the store
// refuses writes until a delay has passed. The next write then decides. Reads, removals and all
// other calls of the server continue.
#ifndef CROUT_SERVER_ENGINE_STORE_FACTOR_STORE_H_
#define CROUT_SERVER_ENGINE_STORE_FACTOR_STORE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/factor_parts.h"
#include "kernels/memory.h"
#include "kernels/util/mutex.h"
#include "kernels/util/thread_pool.h"
#include "server/engine/admission/memory_budget.h"
#include "server/engine/store/factor_file.h"
#include "server/engine/store/factor_record.h"
#include "server/engine/store/object_store.h"
#include "server/engine/store/store_state.h"
#include "server/engine/store/store_threads.h"

namespace crout {

class FactorStore;

// A file of the store, charged to its budget. Move-only. Its destruction leaves the file in the
// directory; Discard() removes it.
class StoredFile {
 public:
  StoredFile() = default;  // no file
  StoredFile(StoredFile&& other) noexcept { *this = std::move(other); }
  StoredFile& operator=(StoredFile&& other) noexcept {
    store_ = other.store_;
    reservation_ = std::move(other.reservation_);
    account_ = std::move(other.account_);
    object_ = std::exchange(other.object_, {});
    damaged_ = other.damaged_;
    return *this;
  }

  explicit operator bool() const { return !object_.name.empty(); }
  // The folder of the factor (ObjectStore).
  const std::string& folder() const { return object_.folder; }
  size_t bytes() const { return reservation_.bytes(); }
  // Counts the bytes for `owner` from now on.
  void SetOwner(std::shared_ptr<ReservationOwner> owner) noexcept {
    reservation_.SetOwner(std::move(owner));
  }
  // Charges later operations on the file to this tenant, at first to the tenant of the factor.
  void SetAccount(std::string account) noexcept { account_ = std::move(account); }
  // Marks the file as damaged. Discard() then quarantines it.
  void MarkDamaged() { damaged_ = true; }
  // Removes the file and returns its bytes to the budget, or quarantines it if it is damaged.
  // Leaves it alone if its folder has another owner by now. Does not block: a thread of the store
  // does the work. Has no effect without a file.
  void Discard() noexcept;

 private:
  friend class FactorStore;
  StoredFile(FactorStore* store, std::string account, StoredObject object, Reservation reservation)
      : store_(store),
        reservation_(std::move(reservation)),
        account_(std::move(account)),
        object_(std::move(object)) {}

  FactorStore* store_ = nullptr;
  Reservation reservation_;
  std::string account_;
  StoredObject object_;
  bool damaged_ = false;
};

// A file that is discarded on destruction, unless it is claimed. Move-only.
class UnclaimedFile {
 public:
  UnclaimedFile() = default;  // no file
  explicit UnclaimedFile(StoredFile file) : file_(std::move(file)) {}
  UnclaimedFile(UnclaimedFile&& other) noexcept : file_(std::move(other.file_)) {}
  UnclaimedFile& operator=(UnclaimedFile&& other) noexcept {
    if (this != &other) {
      file_.Discard();
      file_ = std::move(other.file_);
    }
    return *this;
  }
  ~UnclaimedFile() { file_.Discard(); }

  explicit operator bool() const { return static_cast<bool>(file_); }
  const std::string& folder() const { return file_.folder(); }
  void SetAccount(std::string account) noexcept { file_.SetAccount(std::move(account)); }
  StoredFile Claim() { return std::move(file_); }

 private:
  StoredFile file_;
};

// A factor that was found in the store.
struct FoundFactor {
  FactorRecord record;  // the analysis of a sparse factor has no arrays
  StoredFile file;
  absl::Time lease_end;
  size_t part_bytes = 0;      // FactorParts::bytes() of its parts
  size_t analysis_bytes = 0;  // FactorFile::analysis_bytes()
  std::string analysis_id;    // FactorFile::analysis_id()
  bool has_matrix = false;
};

struct FactorStoreOptions {
  size_t max_bytes = 0;  // most bytes of all files; 0: ObjectStore::DefaultLimit()
  int threads = 2;       // concurrent reads and writes
};

// Thread-safe. Outlives its files. Read and write calls run on the threads of the store and block
// until they are done; call them without locks.
class FactorStore {
 public:
  // Delay between a failed write and the next attempt.
  static constexpr std::chrono::seconds kRetryDelay{30};

  // Reads the headers of all files in the folders of `objects`. `found` has the newest version of
  // each factor. Older versions are removed. Damaged files are quarantined. Files of another format
  // stay and are charged.
  //
  // If the files exceed the budget, removes factors that are not durable, those whose leases end
  // first before others. FAILED_PRECONDITION if the rest still exceeds it. Otherwise an error of
  // `objects`. `found` is empty after an error.
  static absl::StatusOr<std::unique_ptr<FactorStore>> Open(std::unique_ptr<ObjectStore> objects,
                                                           const FactorStoreOptions& options,
                                                           std::vector<FoundFactor>* found);
  // Reads the headers of a folder that this process has acquired, as Open() does. Factors that
  // exceed the budget stay in the storage and are counted as unusable. Returns the first error.
  // UNAVAILABLE or RESOURCE_EXHAUSTED, also for one header: a later call may succeed.
  absl::Status ReadFolder(const std::string& folder, std::vector<FoundFactor>* found);
  // Completes scheduled removals.
  ~FactorStore();
  FactorStore(const FactorStore&) = delete;  // Its threads point to it.
  FactorStore& operator=(const FactorStore&) = delete;

  // The folder of new factors.
  std::string home() const { return objects_->home(); }
  // Returns true while no other process can own the folder.
  bool Holds(const std::string& folder) const { return objects_->Holds(folder); }

  // The budget of bytes in the storage.
  MemoryBudget& budget() { return budget_; }
  // Bytes to reserve for a file with this many bytes.
  size_t Charged(size_t file_bytes) const { return objects_->Charged(file_bytes); }

  // Most calls of one tenant that may wait for the threads of the store.
  static constexpr size_t kMaxWaiting = 64;
  // Returns the number of the tenant's calls that wait for a thread.
  size_t waiting(std::string_view tenant) const;
  // OK unless a write has failed recently, the storage does not respond, or kMaxWaiting calls of
  // the tenant wait; then UNAVAILABLE with the cause.
  absl::Status CheckWritable(std::string_view tenant) const;
  // Seconds after which a write may succeed: the rest of the time for which writes are refused, and
  // at least one.
  double RetrySeconds() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes one version of a factor to the folder `record.folder`. It is durable on return.
  // `reservation` has Charged(image.bytes()) of budget(). The write is charged to `account`.
  // Errors: those of CheckWritable() for `account` and of ObjectStore::Put(). UNAVAILABLE also if
  // the write takes too long. It then sets *overdue, which uses the parts until it ends.
  absl::StatusOr<StoredFile> Write(const FactorRecord& record, std::string_view account,
                                   FactorImage image, Reservation reservation,
                                   std::shared_ptr<OverdueWrite>* overdue);
  // Reads the parts into memory that the caller has reserved. DATA_LOSS: the file is damaged or
  // gone. UNAVAILABLE: the storage failed; a later call may succeed.
  absl::StatusOr<FactorParts> ReadParts(const StoredFile& file, MemoryResource& memory);
  // Reads the analysis of a sparse factor. Errors are those of ReadParts().
  absl::StatusOr<Analysis> ReadAnalysis(const StoredFile& file);
  // Blocks until no write is overdue.
  void AwaitOverdueWrites() { threads_.AwaitOverdue(); }
  // Blocks until the bytes of all discarded files are back in the budget.
  void AwaitDiscards() ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for the files whose removals are charged to `account`.
  void AwaitDiscards(std::string_view account) ABSL_LOCKS_EXCLUDED(mutex_);

  // Leaves the file in the storage and charged: its factor is of no use to this process.
  void SetAside(StoredFile file);
  // Records the end of the lease for the next start. Does not block: a thread of the store does the
  // work.
  void SetLeaseEnd(const StoredFile& file, absl::Time end) noexcept;

  StoreState state() const;

 private:
  friend class StoredFile;
  struct Candidate;
  struct HeaderReads;
  using Discards = std::map<std::string, int, std::less<>>;

  FactorStore(std::unique_ptr<ObjectStore> objects, int threads, size_t max_bytes);
  // If `whole`, returns the error of a header that a later call may read.
  absl::Status Scan(const std::vector<std::string>& folders, ThreadPool& threads, bool whole,
                    std::vector<FoundFactor>* found);
  void ReadHeaders(std::vector<Candidate>& candidates, ThreadPool& threads) const;
  void ReadNextHeaders(HeaderReads& reads) const;
  // Returns false if the system is out of memory.
  bool ScheduleHeader(HeaderReads& reads) const;
  void ReadHeader(Candidate& candidate) const;
  absl::StatusOr<FactorFile> OpenObject(const StoredObject& object) const;
  absl::Status Charge(std::vector<Candidate>& candidates, size_t other_bytes,
                      std::vector<FoundFactor>* found);

  void Discard(StoredFile file) noexcept;
  void DiscardNow(StoredFile file) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  void CountDiscard(Discards::node_type node) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  void EndDiscard(const std::string& account) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  // Refuses writes for `delay`.
  void Degrade(const absl::Status& status, std::chrono::seconds delay) ABSL_LOCKS_EXCLUDED(mutex_);

  // Constant after construction.
  const std::unique_ptr<ObjectStore> objects_;
  MemoryBudget budget_;

  mutable Mutex mutex_;
  Reservation set_aside_ ABSL_GUARDED_BY(mutex_);  // files without a StoredFile
  std::string failure_ ABSL_GUARDED_BY(mutex_);    // empty: healthy
  std::chrono::steady_clock::time_point retry_time_ ABSL_GUARDED_BY(mutex_);
  Discards discarding_ ABSL_GUARDED_BY(mutex_);  // scheduled removals of each account
  CondVar discarded_;

  std::atomic<int64_t> quarantined_ = 0;
  std::atomic<int64_t> unusable_ = 0;
  std::atomic<int64_t> written_bytes_ = 0;
  std::atomic<int64_t> read_bytes_ = 0;
  std::atomic<int64_t> failed_writes_ = 0;
  std::atomic<int64_t> failed_reads_ = 0;

  StoreThreads threads_;  // destroyed first
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_STORE_FACTOR_STORE_H_
