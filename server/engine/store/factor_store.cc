// SPDX-License-Identifier: Apache-2.0

#include "server/engine/store/factor_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <latch>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"

namespace crout {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kSuffix = ".safetensors";
// Most calls that may wait for the threads of the store. Further writes are refused.
constexpr size_t kMaxWaiting = 64;
// Most scheduled tasks. Further ends of leases are not recorded.
constexpr size_t kMaxScheduled = 10'000;
// File systems allocate blocks of this many bytes.
constexpr size_t kBlockBytes = 4096;

absl::Status CreateFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("--store: creating ", path, ": ", error.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<OpenFile> LockDirectory(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/lock");
  OpenFile lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (lock.descriptor() < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("--store: opening ", path, ": ", std::strerror(errno)));
  }
  if (flock(lock.descriptor(), LOCK_EX | LOCK_NB) == 0) return lock;
  return absl::FailedPreconditionError(
      absl::StrCat("--store: another croutd uses ", directory,
                   ": stop it, or give each daemon a separate directory"));
}

// Returns the bytes of the file system that this user may use in addition.
size_t FreeBytes(const std::string& directory) {
  struct statvfs about;
  if (statvfs(directory.c_str(), &about) != 0) return 0;
  return static_cast<size_t>(about.f_bavail) * about.f_frsize;
}

struct ListedFile {
  std::string name;  // relative to the folder
  bool usable_name = false;
};

// Returns the bytes on disk of the file.
size_t DiskBytesOf(const std::string& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  return error ? 0 : FactorStore::DiskBytes(bytes);
}

// Lists all files below the folder.
absl::StatusOr<std::vector<ListedFile>> ListFiles(const std::string& folder) {
  std::vector<ListedFile> files;
  std::error_code error;
  for (fs::recursive_directory_iterator next(folder, error), end; !error && next != end;
       next.increment(error)) {
    std::error_code no_file;
    if (!next->is_regular_file(no_file)) continue;
    std::string name = next->path().string().substr(folder.size() + 1);
    const bool usable = next.depth() == 0 && absl::EndsWith(name, kSuffix);
    files.push_back({std::move(name), usable});
  }
  if (error) {
    return absl::UnavailableError(absl::StrCat("--store: listing ", folder, ": ", error.message()));
  }
  return files;
}

std::string FileName(const FactorRecord& record) {
  return absl::StrCat(record.handle.ToString(), "-", record.version, kSuffix);
}

void SetModificationTime(const std::string& path, absl::Time time) {
  // The last second that all file systems can store; a lease beyond it has no end.
  const absl::Time last = absl::FromUnixSeconds(int64_t{0xffffffff});
  const timespec times[] = {{0, UTIME_OMIT}, absl::ToTimespec(std::min(time, last))};
  // An error is harmless: the lease then starts again at the next start.
  static_cast<void>(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW));
}

}  // namespace

// A file with the name of a factor, while the store starts.
struct FactorStore::Candidate {
  std::string name;
  size_t bytes = 0;  // charged
  absl::Status status = {};
  FoundFactor found = {};
};

size_t FactorStore::DiskBytes(size_t file_bytes) {
  return (file_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

absl::StatusOr<std::unique_ptr<FactorStore>> FactorStore::Open(const FactorStoreOptions& options,
                                                               std::vector<FoundFactor>* found) {
  const std::string& directory = options.directory;
  CROUT_RETURN_IF_ERROR(CreateFolder(directory));
  CROUT_ASSIGN_OR_RETURN(OpenFile lock, LockDirectory(directory));
  for (const char* folder : {"/factors", "/quarantine"}) {
    const std::string path = directory + folder;
    CROUT_RETURN_IF_ERROR(CreateFolder(path));
    // The names of files are handles, which give access to the factors.
    if (chmod(path.c_str(), S_IRWXU) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("--store: restricting ", path, ": ", std::strerror(errno)));
    }
  }
  size_t max_bytes = options.max_bytes;
  if (max_bytes == 0) {
    max_bytes = FreeBytes(directory);
    for (const char* folder : {"/factors", "/quarantine"}) {
      CROUT_ASSIGN_OR_RETURN(const std::vector<ListedFile> files, ListFiles(directory + folder));
      for (const ListedFile& file : files) {
        max_bytes += DiskBytesOf(absl::StrCat(directory, folder, "/", file.name));
      }
    }
    max_bytes /= 2;
  }
  CROUT_RETURN_IF_ERROR(SyncDirectory(directory));
  // The name of the directory itself. It usually existed before, and its parent may be unreadable.
  SyncDirectory(fs::absolute(directory).parent_path()).IgnoreError();
  std::unique_ptr<FactorStore> store(new FactorStore(options, std::move(lock), max_bytes));
  CROUT_RETURN_IF_ERROR(store->Scan(found));
  return store;
}

FactorStore::FactorStore(const FactorStoreOptions& options, OpenFile lock, size_t max_bytes)
    : factors_(options.directory + "/factors"),
      quarantine_(options.directory + "/quarantine"),
      lock_(std::move(lock)),
      budget_(max_bytes),
      threads_(options.threads) {}

FactorStore::~FactorStore() = default;

std::string FactorStore::PathOf(std::string_view name) const {
  return absl::StrCat(factors_, "/", absl::string_view(name.data(), name.size()));
}

absl::Status FactorStore::Scan(std::vector<FoundFactor>* found) {
  size_t other_bytes = 0;
  std::vector<Candidate> candidates;
  CROUT_ASSIGN_OR_RETURN(std::vector<ListedFile> files, ListFiles(factors_));
  for (ListedFile& file : files) {
    if (absl::EndsWith(file.name, absl::StrCat(kSuffix, kTemporarySuffix)) &&
        RemoveFile(PathOf(file.name)).ok()) {
      continue;  // unfinished
    }
    if (file.usable_name) {
      candidates.push_back({.name = std::move(file.name)});
    } else {
      other_bytes += DiskBytesOf(PathOf(file.name));
      ++unusable_;
    }
  }
  ReadHeaders(candidates);
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
      } else if (!RemoveFile(PathOf(candidate.name)).ok()) {
        other_bytes += candidate.bytes;
        ++unusable_;
      }
      continue;
    }
    const bool damaged = absl::IsDataLoss(candidate.status);
    if (!damaged || !Quarantine(candidate.name)) {
      other_bytes += DiskBytesOf(PathOf(candidate.name));
      ++unusable_;
    }
  }
  CROUT_ASSIGN_OR_RETURN(files, ListFiles(quarantine_));
  quarantined_ = std::ssize(files);
  for (const ListedFile& file : files) {
    other_bytes += DiskBytesOf(absl::StrCat(quarantine_, "/", file.name));
  }
  return Charge(usable, other_bytes, found);
}

void FactorStore::ReadHeaders(std::vector<Candidate>& candidates) {
  const size_t stripes = static_cast<size_t>(threads_.thread_count());
  std::latch done(static_cast<ptrdiff_t>(stripes));
  for (size_t stripe = 0; stripe < stripes; ++stripe) {
    threads_.Schedule([this, &candidates, &done, stripe, stripes] {
      for (size_t i = stripe; i < candidates.size(); i += stripes) ReadHeader(candidates[i]);
      done.count_down();
    });
  }
  done.wait();
}

void FactorStore::ReadHeader(Candidate& candidate) const {
  candidate.status = CatchBadAlloc([&]() -> absl::Status {
    CROUT_ASSIGN_OR_RETURN(const FactorFile file, FactorFile::Open(PathOf(candidate.name)));
    if (FileName(file.record()) != candidate.name) {
      return absl::DataLossError("the file has the name of another factor");
    }
    FoundFactor& found = candidate.found;
    found.record = file.record();
    found.lease_end = file.modified();
    candidate.bytes = DiskBytes(file.file_bytes());
    found.part_bytes = file.part_bytes();
    found.analysis_bytes = file.analysis_bytes();
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
  const auto exceeded = [&](size_t bytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--store: the durable factors and the files that are not in use exceed the limit of ",
        budget_.limit(), " bytes by at least ", bytes,
        " bytes: raise --max-store-bytes, or remove files from its folder quarantine"));
  };
  std::optional<Reservation> others = budget_.TryReserve(other_bytes);
  if (!others) return exceeded(other_bytes - budget_.limit());
  {
    MutexLock lock(&mutex_);
    set_aside_ = *std::move(others);
  }
  for (Candidate& candidate : candidates) {
    std::optional<Reservation> reservation = budget_.TryReserve(candidate.bytes);
    if (!reservation && candidate.found.record.durable) {
      return exceeded(budget_.reserved() + candidate.bytes - budget_.limit());
    }
    if (!reservation) {
      CROUT_RETURN_IF_ERROR(RemoveFile(PathOf(candidate.name)));
      continue;
    }
    candidate.found.file = StoredFile(this, std::move(candidate.name), *std::move(reservation));
    found->push_back(std::move(candidate.found));
  }
  return absl::OkStatus();
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

void FactorStore::Degrade(const absl::Status& status) {
  ++failed_writes_;
  MutexLock lock(&mutex_);
  failure_ = std::string(status.message());
  retry_time_ = SteadyNow() + kRetryDelay;
}

absl::StatusOr<StoredFile> FactorStore::Write(const FactorRecord& record, const FactorImage& image,
                                              Reservation reservation) {
  CROUT_RETURN_IF_ERROR(CheckWritable());
  StoredFile file(this, FileName(record), std::move(reservation));
  const std::string path = PathOf(file.name_);
  const absl::Time lease_end = WallNow() + record.lease;
  const absl::Status status = Run(record.tenant, [&] {
    CROUT_RETURN_IF_ERROR(image.Write(factors_, path));
    SetModificationTime(path, std::min(lease_end, record.life_end));
    return absl::OkStatus();
  });
  if (!status.ok()) {
    Degrade(status);
    return status;
  }
  written_bytes_ += static_cast<int64_t>(image.bytes());
  MutexLock lock(&mutex_);
  failure_.clear();
  return file;
}

absl::StatusOr<FactorParts> FactorStore::ReadParts(const StoredFile& file, MemoryResource& memory) {
  FactorParts parts;
  const absl::Status status = Run(/*tenant=*/"", [&]() -> absl::Status {
    CROUT_ASSIGN_OR_RETURN(const FactorFile opened, FactorFile::Open(PathOf(file.name_)));
    CROUT_ASSIGN_OR_RETURN(parts, opened.ReadParts(memory));
    return absl::OkStatus();
  });
  if (absl::IsUnavailable(status)) ++failed_reads_;
  CROUT_RETURN_IF_ERROR(status);
  read_bytes_ += static_cast<int64_t>(parts.bytes());
  return parts;
}

absl::StatusOr<std::shared_ptr<const Analysis>> FactorStore::ReadAnalysis(const StoredFile& file) {
  std::shared_ptr<const Analysis> analysis;
  const absl::Status status = Run(/*tenant=*/"", [&]() -> absl::Status {
    CROUT_ASSIGN_OR_RETURN(const FactorFile opened, FactorFile::Open(PathOf(file.name_)));
    CROUT_ASSIGN_OR_RETURN(analysis, opened.ReadAnalysis());
    return absl::OkStatus();
  });
  if (absl::IsUnavailable(status)) ++failed_reads_;
  CROUT_RETURN_IF_ERROR(status);
  return analysis;
}

bool FactorStore::Quarantine(const std::string& name) noexcept {
  std::error_code error;
  fs::rename(PathOf(name), absl::StrCat(quarantine_, "/", name), error);
  return !error;
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
  const bool removed = !file.damaged_ && RemoveFile(PathOf(file.name_)).ok();
  if (file.damaged_ && Quarantine(file.name_)) {
    ++quarantined_;
  } else if (!removed) {
    ++unusable_;
  }
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
    threads_.Schedule([path = PathOf(file.name_), end] { SetModificationTime(path, end); });
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
