// SPDX-License-Identifier: Apache-2.0

// A fixture for cache tests, with fake devices, small budgets, host memory that tests can observe,
// and failpoints.
#ifndef CROUT_TESTS_SERVER_ENGINE_CACHE_CACHE_FIXTURE_H_
#define CROUT_TESTS_SERVER_ENGINE_CACHE_CACHE_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/scheduling/device_pool.h"
#include "server/observability/metrics/metrics.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/memory/counting_resource.h"
#include "tests/support/timing/failpoints.h"
#include "tests/support/timing/gate.h"

namespace crout {

// Host memory of 1 GiB. A test can block its allocations and corrupt its last block. Thread-safe,
// except for last().
class HostMemoryProbe final : public MemoryResource {
 public:
  // Blocks allocations, and so demotions, while closed.
  testing::Gate& gate() { return gate_; }
  testing::CountingResource& counting() { return counting_; }
  // Returns the block allocated last. Call only while no thread allocates.
  std::byte* last() const { return last_; }

 protected:
  absl::StatusOr<void*> DoAllocate(size_t bytes) override;
  void DoDeallocate(void* data, size_t bytes) override;

 private:
  testing::Gate gate_;
  testing::CountingResource counting_{size_t{1} << 30};
  std::atomic<std::byte*> last_ = nullptr;
  Mutex mutex_;
  std::map<void*, Buffer> blocks_ ABSL_GUARDED_BY(mutex_);
};

// Factors belong to kTenant unless the options name another tenant. Budgets are counted in units of
// kUnit bytes. `slot` is the index of a device.
class CacheTest : public ::testing::Test {
 protected:
  // Bytes charged for a typical factor, and the part of them that contains its data.
  static constexpr size_t kUnit = size_t{32} << 10;
  static constexpr size_t kUnitData = kUnit - FactorCache::kEntryBytes;
  static constexpr std::string_view kTenant = "alice";

  ~CacheTest() override { End(); }

  // Creates a pool with one device per kind, named "cuda:N" or "host", where N is its index, and
  // the cache. Each device has a budget of `device_units`; the host memory has `host_units`.
  void Start(const std::vector<DeviceKind>& kinds, size_t device_units, size_t host_units);
  void Start(size_t device_units, size_t host_units) {
    Start({DeviceKind::kCuda}, device_units, host_units);
  }

  // Ends the cache and its pool, if they exist.
  void End();

  // Makes a factor whose data are filled with `fill`, and reserves its memory as workers of the
  // daemon do. The cache charges `bytes` for it, including the bytes of the entry, and evicts
  // factors for `tenant`. Returns RESOURCE_EXHAUSTED if they do not fit.
  absl::StatusOr<NewFactor> Make(char fill, size_t bytes = kUnit, size_t slot = 0,
                                 std::string_view tenant = kTenant);
  // Makes a dense factor of order kStorableOrder, of about kUnit bytes, that the store can read
  // back.
  static constexpr int64_t kStorableOrder = 54;
  absl::StatusOr<NewFactor> MakeStorable(char fill, std::string_view tenant = kTenant);
  // Makes and inserts a factor, with a lease of an hour by default. Fails the test on error. A
  // tenant may pin 3 units.
  Handle Put(char fill, size_t bytes = kUnit, size_t slot = 0, InsertOptions options = {});

  // Uses the factor and returns the byte that fills it, or '!' if not all bytes are equal. If
  // needed, promotes the factor to reserved memory of its device. Sets `promoted` to whether it
  // did.
  absl::StatusOr<char> Use(const Handle& handle, bool* promoted = nullptr);
  absl::StatusOr<char> UsePinned(FactorCache::Pin& pin, bool* promoted = nullptr);
  absl::Status Touch(const Handle& handle) { return cache_->Acquire(kTenant, handle).status(); }

  Tier TierOf(const Handle& handle) { return cache_->Describe(kTenant, handle)->tier; }
  // Returns the reason in the NOT_FOUND error of the handle, or "" if the handle is valid.
  std::string ReasonGone(const Handle& handle, std::string_view tenant = kTenant);

  DeviceSlot& slot(size_t i = 0) { return *pool_->slots()[i]; }
  testing::FakeDevice& device(size_t i = 0) { return *devices_[i]; }
  size_t DeviceUnits(size_t i = 0) { return slot(i).budget->reserved() / kUnit; }
  size_t HostUnits() { return pool_->host_budget().reserved() / kUnit; }
  // Returns the value of a series (tests/server/scrape.h). Fails the test if it is missing.
  double Metric(std::string_view series);

  // Sweeps the cache and waits until the memory of removed factors is freed.
  void Sweep();
  void Advance(absl::Duration duration) { failpoints_.Advance(duration); }

  testing::Failpoints failpoints_;
  HostMemoryProbe host_memory_;
  std::vector<testing::FakeDevice*> devices_;  // owned by pool_
  std::unique_ptr<Metrics> metrics_;
  TenantLoads loads_;
  Quotas quotas_;
  std::unique_ptr<DevicePool> pool_;
  std::unique_ptr<FactorStore> files_;  // used by Start(); null: no store
  std::unique_ptr<FactorCache> cache_;
};

}  // namespace crout

#endif  // CROUT_TESTS_SERVER_ENGINE_CACHE_CACHE_FIXTURE_H_
