// SPDX-License-Identifier: Apache-2.0

// Memory that clients on this machine share with the server: files that clients offer (decision
// 0071), and GPU memory that clients request (decision 0078).
#ifndef CROUT_SERVER_ENGINE_UPLOAD_SHARED_REGION_H_
#define CROUT_SERVER_ENGINE_UPLOAD_SHARED_REGION_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/util/mutex.h"
#include "kernels/util/owned_file.h"
#include "kernels/util/thread_pool.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/scheduling/device_pool.h"

namespace crout {

// A mapped region. The client may write to it at any time, also while the server reads. Therefore
// copy each byte once to private memory, and check the copy.
class SharedRegion {
 public:
  SharedRegion(const SharedRegion&) = delete;  // It owns a mapping.
  SharedRegion& operator=(const SharedRegion&) = delete;

  const std::string& id() const { return id_; }
  // Memory of the host, or of `device()`. Use Read() and Write() unless the place is known.
  std::span<std::byte> bytes() const { return bytes_; }
  // The GPU that has the memory; null for host memory.
  const Device* device() const { return slot_ == nullptr ? nullptr : slot_->device.get(); }
  // Whether the memory is host memory that is registered with the GPUs (Device::Register).
  bool is_registered() const { return registration_ != nullptr; }
  // Whether an Uploader of `device` can copy from the region (Uploader::Send).
  bool CanSendTo(const Device& device) const {
    return slot_ == nullptr ? is_registered() : slot_->device.get() == &device;
  }

  // Copy a part of the region to host memory, and host memory to a part of the region. Wait for the
  // copy.
  absl::Status Read(std::span<const std::byte> part, std::byte* to) const;
  absl::Status Write(std::span<const std::byte> from, std::byte* part) const;

 private:
  friend class SharedRegions;
  SharedRegion(std::string id, uid_t user)
      : id_(std::move(id)), user_(user), release_(std::to_string(user)) {}
  ~SharedRegion();

  const std::string id_;
  const uid_t user_;
  ThreadPool::Node release_;  // for the task that destroys the region
  Reservation reservation_;
  std::span<std::byte> bytes_;
  std::unique_ptr<HostRegistration> registration_;
  // Memory of a GPU. Null for host memory.
  DeviceSlot* slot_ = nullptr;
  std::unique_ptr<ShareableMemory> device_memory_;
};

// The regions of all clients. Pages of files are charged to the host budget, whether or not the
// client has written to them, because the server allocates the page of a hole when it reads the
// hole. GPU memory is charged to the budget of its device.
//
// A region lives until its last reference is released: the client's connection holds one, and so
// does each call that uses the region. Thread-safe. Outlives its regions.
class SharedRegions {
 public:
  static constexpr size_t kIdBytes = 16;

  // Largest sizes of all regions in bytes; 0: none is accepted. A user may have a quarter of each.
  struct Limits {
    size_t host = 0;
    size_t device = 0;  // for each GPU
  };
  // Files are registered with the GPUs of `devices`.
  SharedRegions(FactorCache& cache, DevicePool& devices, const Limits& limits);
  ~SharedRegions();
  SharedRegions(const SharedRegions&) = delete;  // Regions refer to it.
  SharedRegions& operator=(const SharedRegions&) = delete;

  using Region = std::shared_ptr<const SharedRegion>;
  using Done = absl::AnyInvocable<void(absl::StatusOr<Region>) &&>;
  // Maps `size` bytes of `memory` for `user`, and passes the region or an error to `done`. Both run
  // on the thread of this object, in turns of users. `memory` must be a memfd of exactly this size
  // that is sealed against shrinking and growing, with pages of the system's usual size: then no
  // access to the mapping can fail. INVALID_ARGUMENT for any other file. RESOURCE_EXHAUSTED if a
  // limit or the host budget is reached.
  void Add(OwnedFile memory, uint64_t size, uid_t user, Done done);

  // Memory of a GPU, and the descriptor with which the client maps it.
  struct DeviceRegion {
    Region region;
    OwnedFile memory;
  };
  using DeviceDone = absl::AnyInvocable<void(absl::StatusOr<DeviceRegion>) &&>;
  // Allocates at least `size` bytes of zeroed memory on the GPU with the UUID `gpu` (16 bytes) for
  // `user`. The thread, the turns and the limits are those of Add(). INVALID_ARGUMENT if the server
  // has no such GPU, UNIMPLEMENTED if the GPU cannot share memory. RESOURCE_EXHAUSTED if a limit or
  // the budget of the GPU is reached.
  void Allocate(std::string gpu, uint64_t size, uid_t user, DeviceDone done);

  // Returns the region if the user of the call may use it. `user` is a user ID in decimal, or empty
  // if it is unknown; the identifier, 128 random bits, is then sufficient. ABORTED (reason
  // SHARED_MEMORY_GONE) for an unknown region and for a region of another user.
  absl::StatusOr<Region> Find(std::string_view id, std::string_view user) const;

  struct Totals {
    size_t limit = 0;
    size_t regions = 0;
    size_t bytes = 0;
    size_t registered_bytes = 0;  // registered with GPUs
    size_t device_limit = 0;      // for each GPU
    size_t device_bytes = 0;      // on all GPUs
  };
  Totals totals() const;

 private:
  struct User {
    size_t regions = 0;
    size_t bytes = 0;  // charged
  };
  using Users = std::map<uid_t, User>;  // users that have regions

  // Runs `make` on the thread in the user's turn, and passes its result to `done`.
  template <class Result>
  void Schedule(uid_t user, absl::AnyInvocable<absl::StatusOr<Result>()> make,
                absl::AnyInvocable<void(absl::StatusOr<Result>) &&> done);
  absl::StatusOr<Region> Map(const OwnedFile& memory, uint64_t size, uid_t user);
  absl::StatusOr<DeviceRegion> MapDevice(const std::string& gpu, uint64_t size, uid_t user);
  absl::StatusOr<DeviceSlot*> FindGpu(const std::string& uuid) const;
  // `slot` has the memory; null: the host.
  absl::Status Charge(const DeviceSlot* slot, uid_t user, size_t bytes);
  void Return(const DeviceSlot* slot, uid_t user, size_t bytes);
  // Adds a region. Release() ends it and returns the charge.
  Region Publish(SharedRegion* made);
  void Release(SharedRegion* region) noexcept;

  // Registers the memory with the GPUs. Null if there are none, or if none can register it: its
  // bytes are then copied through staging memory.
  std::unique_ptr<HostRegistration> Register(std::span<std::byte> memory);

  FactorCache& cache_;
  DevicePool& devices_;
  const Limits limits_;
  mutable Mutex mutex_;
  std::map<const DeviceSlot*, Users> users_ ABSL_GUARDED_BY(mutex_);  // null: the host
  std::map<std::string, std::weak_ptr<const SharedRegion>, std::less<>> regions_
      ABSL_GUARDED_BY(mutex_);
  size_t registered_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<ThreadPool> thread_;  // maps and unmaps; null if both limits are 0
};

// A range of a region.
struct SharedBytes {
  std::span<std::byte> bytes;
  SharedRegions::Region region;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_UPLOAD_SHARED_REGION_H_
