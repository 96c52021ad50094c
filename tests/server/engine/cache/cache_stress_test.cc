// SPDX-License-Identifier: Apache-2.0

// Runs all cache operations concurrently: acquire, use, download, release, replace, pin, evict and
// sweep. Each use must see one complete version, and no memory may leak. Intended for
// ThreadSanitizer.
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/util/mutex.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::cache_stress_test {
namespace {

constexpr int kSlots = 12;  // more factors than fit on the device
constexpr int kThreads = 6;
constexpr int kSteps = 5000;

class CacheStressTest : public CacheTest {
 protected:
  Handle HandleAt(int i) {
    MutexLock lock(&mutex_);
    return handles_[i];
  }
  void SetHandle(int i, const Handle& handle) {
    MutexLock lock(&mutex_);
    handles_[i] = handle;
  }

  // Two tenants compete for the memory.
  static std::string TenantOf(int i) { return i % 2 == 0 ? std::string(kTenant) : "bob"; }

  // Makes a factor of one to three units. Returns nullopt if the device is full of factors in use,
  // or of factors within the share of the other tenant.
  std::optional<NewFactor> TryMake(std::mt19937& random, const std::string& tenant) {
    auto factor =
        Make(static_cast<char>('a' + random() % 26), (1 + random() % 3) * kUnit, 0, tenant);
    if (factor.ok()) return *std::move(factor);
    if (factor.status().code() != absl::StatusCode::kResourceExhausted) ++wrong_;
    return std::nullopt;
  }

  void UseOne(const std::string& tenant, const Handle& handle) {
    auto pin = cache_->Acquire(tenant, handle);
    if (!pin.ok()) return;
    const auto fill = UsePinned(*pin);
    if (fill.ok()) {
      ++uses_;
      // `n` is the byte that fills this version (see Make).
      if (*fill != static_cast<char>(pin->summary().n)) ++wrong_;
    } else if (fill.status().code() != absl::StatusCode::kResourceExhausted) {
      ++wrong_;
    }
  }

  // Reads a factor in host memory, as GetFactors does.
  void ReadOne(const std::string& tenant, const Handle& handle) {
    auto pin = cache_->Acquire(tenant, handle);
    if (!pin.ok()) return;
    const auto read = pin->ReadOnHost([&](const FactorParts& parts) {
      if (parts[kLuPart].data()[0] != std::byte(pin->summary().n)) ++wrong_;
      return absl::OkStatus();
    });
    if (!read.ok()) {
      ++wrong_;
    } else if (*read) {
      ++reads_;
    }
  }

  void Step(std::mt19937& random) {
    const int i = static_cast<int>(random() % kSlots);
    const Handle handle = HandleAt(i);
    const std::string tenant = TenantOf(i);
    switch (random() % 8) {
      case 0:
        if (auto factor = TryMake(random, tenant)) {
          const auto inserted = cache_->Insert(*std::move(factor), {.tenant = tenant,
                                                                    .name = "",
                                                                    .request_id = "",
                                                                    .lease = absl::Hours(1),
                                                                    .pin = random() % 4 == 0});
          if (!inserted.ok()) return;  // too much is pinned
          SetHandle(i, inserted->handle);
          cache_->Release(tenant, handle).IgnoreError();
        }
        return;
      case 1:
        if (auto factor = TryMake(random, tenant)) {
          cache_->Replace(tenant, handle, *std::move(factor)).status().IgnoreError();
        }
        return;
      case 2: {
        int64_t next = 0;
        cache_->List(tenant, "", 0, 5, &next);
        cache_->Sweep();
        cache_->tiers();
        return;
      }
      case 3:
        ReadOne(tenant, handle);
        return;
      case 4:
        cache_->Renew(tenant, handle, std::nullopt, Renewal::kReplace, random() % 2 == 0)
            .status()
            .IgnoreError();
        return;
      default:
        UseOne(tenant, handle);
    }
  }

  std::atomic<int> wrong_ = 0;
  std::atomic<int> uses_ = 0;
  std::atomic<int> reads_ = 0;
  Mutex mutex_;
  std::vector<Handle> handles_ ABSL_GUARDED_BY(mutex_) = std::vector<Handle>(kSlots);
};

TEST_F(CacheStressTest, ConcurrentUsesSeeWholeFactorsAndLeakNothing) {
  Start(/*device_units=*/10, /*host_units=*/12);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      std::mt19937 random(t);
      for (int i = 0; i < kSteps; ++i) Step(random);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong_, 0);
  EXPECT_GT(uses_, kThreads * kSteps / 10);
  EXPECT_GT(reads_, 0);
  EXPECT_GT(Metric("crout_cache_promotions_total"), 0);

  Sweep();  // waits until removed factors are freed
  size_t charged = 0;
  for (const TierState& tier : cache_->tiers()) charged += tier.bytes;
  EXPECT_EQ(slot().budget->reserved() + pool_->host_budget().reserved(), charged);
  Advance(absl::Hours(2));
  Sweep();
  EXPECT_EQ(cache_->size(), 0u);
  EXPECT_EQ(cache_->pinned_bytes(), 0u);
  EXPECT_EQ(slot().budget->reserved(), 0u);
  EXPECT_EQ(pool_->host_budget().reserved(), 0u);
  EXPECT_EQ(device().counting_memory().live_bytes(), 0u);
  EXPECT_EQ(host_memory_.counting().live_bytes(), 0u);
}

}  // namespace
}  // namespace crout::cache_stress_test
