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

size_t RoundUp(uint64_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

size_t PageBytes(uint64_t size) {
  return RoundUp(size, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

// The text of a UUID, as the tools of the driver show it.
std::string GpuName(std::string_view uuid) {
  std::string name = "GPU";
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) name += '-';
    absl::StrAppend(&name, absl::Hex(static_cast<unsigned char>(uuid[i]), absl::kZeroPad2));
  }
  return name;
}

}  // namespace

SharedRegion::~SharedRegion() {
  if (device_memory_ != nullptr) return;
  registration_.reset();
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

absl::Status SharedRegion::Read(std::span<const std::byte> part, std::byte* to) const {
  if (device_memory_ != nullptr) return device_memory_->CopyToHost(part.data(), {to, part.size()});
  std::memcpy(to, part.data(), part.size());
  return absl::OkStatus();
}

absl::Status SharedRegion::Write(std::span<const std::byte> from, std::byte* part) const {
  if (device_memory_ != nullptr) return device_memory_->CopyFromHost(from, part);
  std::memcpy(part, from.data(), from.size());
  return absl::OkStatus();
}

SharedRegions::SharedRegions(FactorCache& cache, DevicePool& devices, const Limits& limits)
    : cache_(cache), devices_(devices), limits_(limits) {
  if (limits.host > 0 || limits.device > 0) thread_ = std::make_unique<ThreadPool>(1);
}

SharedRegions::~SharedRegions() { thread_.reset(); }

template <class Result>
void SharedRegions::Schedule(uid_t user, absl::AnyInvocable<absl::StatusOr<Result>()> make,
                             absl::AnyInvocable<void(absl::StatusOr<Result>) &&> done) {
  if (thread_ == nullptr) {
    return std::move(done)(absl::FailedPreconditionError(
        "shared memory is off (--max-shared-memory, --max-shared-device-memory)"));
  }
  thread_->Schedule(std::to_string(user),
                    [make = std::move(make), done = std::move(done)]() mutable {
                      absl::StatusOr<Result> result = absl::InternalError("not mapped");
                      const absl::Status mapped = CatchBadAlloc([&] {
                        result = make();
                        return result.status();
                      });
                      if (mapped.ok()) return std::move(done)(std::move(result));
                      std::move(done)(mapped);
                    });
}

void SharedRegions::Add(OwnedFile memory, uint64_t size, uid_t user, Done done) {
  auto map = [this, memory = std::move(memory), size, user]() mutable {
    const OwnedFile file = std::move(memory);  // closed before `done`; the mapping holds the memory
    return Map(file, size, user);
  };
  Schedule<Region>(user, std::move(map), std::move(done));
}

void SharedRegions::Allocate(std::string gpu, uint64_t size, uid_t user, DeviceDone done) {
  auto map = [this, gpu = std::move(gpu), size, user] { return MapDevice(gpu, size, user); };
  Schedule<DeviceRegion>(user, std::move(map), std::move(done));
}

absl::StatusOr<SharedRegions::Region> SharedRegions::Map(const OwnedFile& memory, uint64_t size,
                                                         uid_t user) {
  CROUT_RETURN_IF_ERROR(CheckFile(memory.get(), size));
  const size_t bytes = PageBytes(size);
  CROUT_RETURN_IF_ERROR(Charge(nullptr, user, bytes));
  absl::Cleanup give_back = [&] { Return(nullptr, user, bytes); };
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
  made->registration_ = Register(made->bytes());
  return Publish(made);
}

absl::StatusOr<SharedRegions::DeviceRegion> SharedRegions::MapDevice(const std::string& gpu,
                                                                     uint64_t size, uid_t user) {
  CROUT_ASSIGN_OR_RETURN(DeviceSlot * slot, FindGpu(gpu));
  if (size == 0 || size > limits_.device) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request is for ", size, " bytes of GPU memory. Request 1 to ",
                     limits_.device, " bytes (--max-shared-device-memory)"));
  }
  const size_t bytes = RoundUp(size, Device::kShareableUnit);
  CROUT_RETURN_IF_ERROR(Charge(slot, user, bytes));
  absl::Cleanup give_back = [&] { Return(slot, user, bytes); };
  CROUT_ASSIGN_OR_RETURN(Reservation reservation, cache_.ReserveOnDevice(*slot, bytes));
  CROUT_ASSIGN_OR_RETURN(auto memory, slot->device->AllocateShareable(bytes));
  CROUT_ASSIGN_OR_RETURN(OwnedFile file, memory->Export());
  auto* const made = new SharedRegion(RandomId(), user);
  made->reservation_ = std::move(reservation);
  made->bytes_ = memory->bytes();
  made->slot_ = slot;
  made->device_memory_ = std::move(memory);
  std::move(give_back).Cancel();
  return DeviceRegion{Publish(made), std::move(file)};
}

absl::StatusOr<DeviceSlot*> SharedRegions::FindGpu(const std::string& uuid) const {
  std::string known;
  for (const auto& slot : devices_.slots()) {
    const DeviceInfo& info = slot->device->info();
    if (info.uuid.empty()) continue;
    if (info.uuid == uuid) return slot.get();
    absl::StrAppend(&known, known.empty() ? "" : ", ", info.name, " (", GpuName(info.uuid), ")");
  }
  return absl::InvalidArgumentError(absl::StrCat("the server does not use ", GpuName(uuid),
                                                 "; its GPUs: ", known.empty() ? "none" : known,
                                                 ". Send arrays in host memory"));
}

SharedRegions::Region SharedRegions::Publish(SharedRegion* made) {
  Region region(made, [this](SharedRegion* released) { Release(released); });
  MutexLock lock(&mutex_);
  if (made->is_registered()) registered_bytes_ += made->reservation_.bytes();
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

absl::Status SharedRegions::Charge(const DeviceSlot* slot, uid_t user, size_t bytes) {
  const size_t limit = slot == nullptr ? limits_.host : limits_.device;
  const char* const flag = slot == nullptr ? "--max-shared-memory" : "--max-shared-device-memory";
  MutexLock lock(&mutex_);
  Users& users = users_[slot];
  size_t all = 0;
  for (const auto& [id, other] : users) all += other.bytes;
  const auto found = users.find(user);
  const User own = found == users.end() ? User() : found->second;
  const size_t quarter = limit / 4;
  if (own.regions >= kMaxRegionsOfUser) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the user has ", own.regions, " regions, the limit. Close some"));
  }
  if (bytes > quarter || own.bytes > quarter - bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the user has regions of ", own.bytes, " bytes and offers ", bytes,
                     "; the limit of a user is ", quarter, ", a quarter of ", flag));
  }
  if (all > limit - bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "all users have regions of ", all, " bytes; the limit is ", limit, " (", flag, ")"));
  }
  users[user] = {own.regions + 1, own.bytes + bytes};
  return absl::OkStatus();
}

void SharedRegions::Return(const DeviceSlot* slot, uid_t user, size_t bytes) {
  MutexLock lock(&mutex_);
  Users& users = users_.find(slot)->second;
  const auto found = users.find(user);
  found->second.bytes -= bytes;
  if (--found->second.regions == 0) users.erase(found);
}

void SharedRegions::Release(SharedRegion* region) noexcept {
  // Unmapping takes long for a large region, and this may be a thread of gRPC.
  thread_->Schedule(std::move(region->release_), [this, region] {
    const DeviceSlot* const slot = region->slot_;
    const uid_t user = region->user_;
    const size_t bytes = region->reservation_.bytes();
    {
      MutexLock lock(&mutex_);
      regions_.erase(region->id());
      if (region->is_registered()) registered_bytes_ -= bytes;
    }
    delete region;
    Return(slot, user, bytes);
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
  Totals totals = {
      .limit = limits_.host, .registered_bytes = registered_bytes_, .device_limit = limits_.device};
  for (const auto& [slot, users] : users_) {
    for (const auto& [id, user] : users) {
      totals.regions += user.regions;
      (slot == nullptr ? totals.bytes : totals.device_bytes) += user.bytes;
    }
  }
  return totals;
}

}  // namespace crout
