// SPDX-License-Identifier: Apache-2.0

// A fixture with the cache of a daemon that shares a bucket with others.
#ifndef CROUT_TESTS_SERVER_REPLICAS_SHARED_CACHE_FIXTURE_H_
#define CROUT_TESTS_SERVER_REPLICAS_SHARED_CACHE_FIXTURE_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/util/status_macros.h"
#include "server/replicas/shared_store.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/support/fakes/memory_s3.h"
#include "tests/support/status_matchers.h"

namespace crout {

class SharedCacheTest : public CacheTest {
 protected:
  static constexpr std::chrono::hours kDuration{3};
  static constexpr absl::Duration kToAdoption = absl::Minutes(241);

  // Connects a daemon to the bucket.
  std::unique_ptr<SharedStore> Connect(const std::string& name,
                                       std::shared_ptr<testing::Connection> connection) {
    auto store =
        SharedStore::Open(std::make_unique<testing::MemoryS3>(bucket_, std::move(connection)),
                          {.prefix = "", .name = name, .duration = kDuration});
    EXPECT_OK(store);
    return *std::move(store);
  }
  void StartWithStore() {
    std::unique_ptr<SharedStore> store = Connect("a", connection_);
    shared_ = store.get();
    leases_ = &store->leases();
    std::vector<FoundFactor> found;
    auto files = FactorStore::Open(std::move(store), {}, &found);
    ASSERT_OK(files);
    files_ = *std::move(files);
    Start(/*device_units=*/4, /*host_units=*/4);
    cache_->Restore(std::move(found), analyses_);
  }
  absl::StatusOr<Handle> TryPut(bool durable) {
    InsertOptions options;
    options.tenant = kTenant;
    options.lease = absl::Hours(1000);
    options.durable = durable;
    options.request_id = durable ? "durable" : "";
    CROUT_ASSIGN_OR_RETURN(NewFactor factor, MakeStorable('a'));
    CROUT_RETURN_IF_ERROR(cache_->StoreForInsert(factor, options));
    CROUT_ASSIGN_OR_RETURN(const FactorInfo info, cache_->Insert(std::move(factor), options));
    return info.handle;
  }
  // Loses the folder to the daemon `second`, which had to wait for the end of its lease.
  void LoseTo(SharedStore& second, const std::string& folder) {
    connection_->down = true;
    Advance(kToAdoption);
    second.leases().Renew();
    ASSERT_OK(second.leases().Scan());
    ASSERT_OK(second.leases().Adopt(folder));
    connection_->down = false;
    leases_->Renew();
    ASSERT_EQ(leases_->Lost(), std::vector<std::string>{folder});
  }

  const std::shared_ptr<testing::MemoryBucket> bucket_ = std::make_shared<testing::MemoryBucket>();
  const std::shared_ptr<testing::Connection> connection_ = std::make_shared<testing::Connection>();
  AnalysisStore analyses_;
  SharedStore* shared_ = nullptr;
  FolderLeases* leases_ = nullptr;  // those of shared_
};

}  // namespace crout

#endif  // CROUT_TESTS_SERVER_REPLICAS_SHARED_CACHE_FIXTURE_H_
