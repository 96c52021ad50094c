// SPDX-License-Identifier: Apache-2.0

// Memory that clients on this machine share with the server (decision 0071).
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
  std::span<std::byte> bytes() const { return bytes_; }
  // Whether the memory is registered with the GPUs (Device::Register).
  bool is_registered() const { return registration_ != nullptr; }

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
};

// The regions of all clients. Their pages are charged to the host budget, whether or not the client
// has written to them, because the server allocates the page of a hole when it reads the hole.
//
// A region lives until its last reference is released: the client's connection holds one, and so
// does each call that uses the region. Thread-safe. Outlives its regions.
class SharedRegions {
 public:
  static constexpr size_t kIdBytes = 16;

  // `limit` is the largest size of all regions in bytes; 0: none is accepted. A user may have a
  // quarter of it. Regions are registered with the GPUs of `devices`.
  SharedRegions(FactorCache& cache, DevicePool& devices, size_t limit);
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

  // Returns the region if the user of the call may use it. `user` is a user ID in decimal, or empty
  // if it is unknown; the identifier, 128 random bits, is then sufficient. ABORTED (reason
  // SHARED_MEMORY_GONE) for an unknown region and for a region of another user.
  absl::StatusOr<Region> Find(std::string_view id, std::string_view user) const;

  struct Totals {
    size_t limit = 0;
    size_t regions = 0;
    size_t bytes = 0;
    size_t registered_bytes = 0;  // registered with GPUs
  };
  Totals totals() const;

 private:
  struct User {
    size_t regions = 0;
    size_t bytes = 0;  // charged
  };

  absl::StatusOr<Region> Map(const OwnedFile& memory, uint64_t size, uid_t user);
  absl::Status Charge(uid_t user, size_t bytes);
  void Return(uid_t user, size_t bytes);
  void Release(SharedRegion* region) noexcept;

  // Registers the memory with the GPUs. Null if there are none, or if none can register it: its
  // bytes are then copied through staging memory.
  std::unique_ptr<HostRegistration> Register(std::span<std::byte> memory);

  FactorCache& cache_;
  DevicePool& devices_;
  const size_t limit_;
  mutable Mutex mutex_;
  std::map<uid_t, User> users_ ABSL_GUARDED_BY(mutex_);  // users that have regions
  std::map<std::string, std::weak_ptr<const SharedRegion>, std::less<>> regions_
      ABSL_GUARDED_BY(mutex_);
  size_t registered_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<ThreadPool> thread_;  // maps and unmaps; null if `limit_` is 0
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_UPLOAD_SHARED_REGION_H_
