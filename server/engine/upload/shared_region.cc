// SPDX-License-Identifier: Apache-2.0

#include "server/engine/upload/shared_region.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"

namespace crout {
namespace {

// Largest number of regions of one user. Each takes an entry of the process's memory map.
constexpr size_t kMaxRegionsOfUser = 256;

absl::Status Refused(absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(
      problem,
      ". Share a file from memfd_create(MFD_ALLOW_SEALING), sealed with F_SEAL_SHRINK and "
      "F_SEAL_GROW"));
}

absl::Status CheckFile(int file, uint64_t size) {
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0) return Refused("the file has no seals");
  if ((seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_GROW) == 0) {
    return Refused("the file can shrink or grow");
  }
  // A page of hugetlbfs can be missing when it is accessed, which raises SIGBUS.
  struct statfs system = {};
  if (fstatfs(file, &system) != 0 || system.f_type != TMPFS_MAGIC) {
    return Refused("the file is not in tmpfs, or has huge pages");
  }
  struct stat there = {};
  if (fstat(file, &there) != 0) return absl::ErrnoToStatus(errno, "fstat of the shared file");
  if (size == 0 || static_cast<uint64_t>(there.st_size) != size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the file has ", there.st_size, " bytes, the offer ", size, ": offer the whole file"));
  }
  return absl::OkStatus();
}

std::string RandomId() {
  std::string id(SharedRegions::kIdBytes, '\0');
  // A short request, which the system never cuts or interrupts.
  if (getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size())) std::abort();
  return id;
}

size_t PageBytes(uint64_t size) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

}  // namespace

SharedRegion::~SharedRegion() {
  registration_.reset();
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

SharedRegions::SharedRegions(FactorCache& cache, DevicePool& devices, size_t limit)
    : cache_(cache), devices_(devices), limit_(limit) {
  if (limit > 0) thread_ = std::make_unique<ThreadPool>(1);
}

SharedRegions::~SharedRegions() { thread_.reset(); }

void SharedRegions::Add(OwnedFile memory, uint64_t size, uid_t user, Done done) {
  if (thread_ == nullptr) {
    return std::move(done)(
        absl::FailedPreconditionError("shared memory is off (--max-shared-memory)"));
  }
  thread_->Schedule(std::to_string(user), [this, memory = std::move(memory), size, user,
                                           done = std::move(done)]() mutable {
    absl::StatusOr<Region> region = absl::InternalError("not mapped");
    const absl::Status mapped = CatchBadAlloc([&] {
      region = Map(memory, size, user);
      return region.status();
    });
    memory.Close();  // The mapping holds the memory.
    if (mapped.ok()) return std::move(done)(std::move(region));
    std::move(done)(mapped);
  });
}

absl::StatusOr<SharedRegions::Region> SharedRegions::Map(const OwnedFile& memory, uint64_t size,
                                                         uid_t user) {
  CROUT_RETURN_IF_ERROR(CheckFile(memory.get(), size));
  const size_t bytes = PageBytes(size);
  CROUT_RETURN_IF_ERROR(Charge(user, bytes));
  absl::Cleanup give_back = [&] { Return(user, bytes); };
  CROUT_ASSIGN_OR_RETURN(Reservation reservation, cache_.ReserveOnHost(bytes));
  void* const start =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), /*offset=*/0);
  if (start == MAP_FAILED) return Refused(absl::StrCat("cannot map it: ", std::strerror(errno)));
  absl::Cleanup unmap = [&] { munmap(start, size); };
  auto* const made = new SharedRegion(RandomId(), user);
  made->reservation_ = std::move(reservation);
  made->bytes_ = {static_cast<std::byte*>(start), size};
  std::move(unmap).Cancel();
  std::move(give_back).Cancel();  // Release() returns the charge.
  Region region(made, [this](SharedRegion* released) { Release(released); });
  made->registration_ = Register(made->bytes());
  MutexLock lock(&mutex_);
  if (made->is_registered()) registered_bytes_ += bytes;
  regions_.emplace(made->id(), region);
  return region;
}

std::unique_ptr<HostRegistration> SharedRegions::Register(std::span<std::byte> memory) {
  for (const auto& slot : devices_.slots()) {
    auto registration = slot->device->Register(memory);
    if (registration.ok() && *registration != nullptr) return *std::move(registration);
  }
  return nullptr;
}

absl::Status SharedRegions::Charge(uid_t user, size_t bytes) {
  MutexLock lock(&mutex_);
  size_t all = 0;
  for (const auto& [id, other] : users_) all += other.bytes;
  const auto found = users_.find(user);
  const User own = found == users_.end() ? User() : found->second;
  const size_t quarter = limit_ / 4;
  if (own.regions >= kMaxRegionsOfUser) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the user has ", own.regions, " regions, the limit. Close some"));
  }
  if (bytes > quarter || own.bytes > quarter - bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the user has regions of ", own.bytes, " bytes and offers ", bytes,
                     "; the limit of a user is ", quarter, ", a quarter of --max-shared-memory"));
  }
  if (all > limit_ - bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("all users have regions of ", all,
                                                     " bytes; the limit is ", limit_,
                                                     " (--max-shared-memory)"));
  }
  users_[user] = {own.regions + 1, own.bytes + bytes};
  return absl::OkStatus();
}

void SharedRegions::Return(uid_t user, size_t bytes) {
  MutexLock lock(&mutex_);
  const auto found = users_.find(user);
  found->second.bytes -= bytes;
  if (--found->second.regions == 0) users_.erase(found);
}

void SharedRegions::Release(SharedRegion* region) noexcept {
  // Unmapping takes long for a large region, and this may be a thread of gRPC.
  thread_->Schedule(std::move(region->release_), [this, region] {
    const uid_t user = region->user_;
    const size_t bytes = region->reservation_.bytes();
    {
      MutexLock lock(&mutex_);
      regions_.erase(region->id());
      if (region->is_registered()) registered_bytes_ -= bytes;
    }
    delete region;
    Return(user, bytes);
  });
}

absl::StatusOr<SharedRegions::Region> SharedRegions::Find(std::string_view id,
                                                          std::string_view user) const {
  {
    MutexLock lock(&mutex_);
    const auto found = regions_.find(id);
    Region region = found == regions_.end() ? nullptr : found->second.lock();
    if (region != nullptr && (user.empty() || user == std::to_string(region->user_))) return region;
  }
  constexpr double kRetrySeconds = 0.01;
  return WithRetryAfter(
      WithReason(
          absl::AbortedError("the server does not hold this region of shared memory for this "
                             "user. Send the bytes in messages"),
          kReasonSharedMemoryGone),
      kRetrySeconds);
}

SharedRegions::Totals SharedRegions::totals() const {
  MutexLock lock(&mutex_);
  Totals totals = {.limit = limit_, .registered_bytes = registered_bytes_};
  for (const auto& [id, user] : users_) {
    totals.regions += user.regions;
    totals.bytes += user.bytes;
  }
  return totals;
}

}  // namespace crout
