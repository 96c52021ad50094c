// SPDX-License-Identifier: Apache-2.0

// A fixture for caches with a store.
#ifndef CROUT_TESTS_SERVER_ENGINE_CACHE_STORE_TIER_FIXTURE_H_
#define CROUT_TESTS_SERVER_ENGINE_CACHE_STORE_TIER_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/util/status_macros.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/server/engine/store/storage.h"
#include "tests/support/status_matchers.h"

namespace crout {

class StoreTierTest : public CacheTest, public ::testing::WithParamInterface<testing::StorageKind> {
 protected:
  static constexpr size_t kLimit = size_t{16} << 20;

  // Starts with a store, and with the factors that it has.
  void StartWithStore(size_t device_units, size_t host_units, size_t max_bytes = kLimit,
                      const std::vector<DeviceKind>& kinds = {DeviceKind::kCuda}) {
    End();
    files_.reset();
    std::vector<FoundFactor> found;
    auto objects = storage_->Open();
    ASSERT_OK(objects);
    auto files = FactorStore::Open(*std::move(objects), {.max_bytes = max_bytes}, &found);
    ASSERT_OK(files);
    files_ = *std::move(files);
    Start(kinds, device_units, host_units);
    AnalysisStore analyses;
    cache_->Restore(std::move(found), analyses);
  }

  static InsertOptions Options(bool durable) {
    InsertOptions options;
    options.tenant = kTenant;
    options.lease = absl::Hours(1);
    options.durable = durable;
    return options;
  }

  absl::StatusOr<Handle> TryPut(char fill, const InsertOptions& options) {
    CROUT_ASSIGN_OR_RETURN(NewFactor factor, MakeStorable(fill, options.tenant));
    CROUT_RETURN_IF_ERROR(cache_->StoreForInsert(factor, options));
    CROUT_ASSIGN_OR_RETURN(const FactorInfo info, cache_->Insert(std::move(factor), options));
    return info.handle;
  }
  Handle Put(char fill, bool durable = false) {
    const absl::StatusOr<Handle> handle = TryPut(fill, Options(durable));
    EXPECT_OK(handle);
    return handle.value_or(Handle());
  }
  absl::Status Replace(const Handle& handle, char fill) {
    CROUT_ASSIGN_OR_RETURN(NewFactor factor, MakeStorable(fill));
    CROUT_RETURN_IF_ERROR(cache_->StoreForReplace(factor, kTenant, handle));
    return cache_->Replace(kTenant, handle, std::move(factor)).status();
  }

  size_t Files() const {
    files_->AwaitOverdueWrites();
    files_->AwaitDiscards();
    return storage_->Names().size();
  }
  FactorInfo Describe(const Handle& handle) {
    const absl::StatusOr<FactorInfo> info = cache_->Describe(kTenant, handle);
    EXPECT_OK(info);
    return info.value_or(FactorInfo());
  }

  // Adds factors until the factor has left `tier`, and host memory if `tier` is the host's.
  void PushOutOf(Tier tier, const Handle& handle) {
    for (int i = 0; i < 8 && ReasonGone(handle).empty() && TierOf(handle) <= tier; ++i) Put('z');
  }

  // Damages the contents of the only file.
  void FlipFile() {
    const std::string name = storage_->Names().at(0);
    std::string bytes = storage_->Read(name);
    bytes.back() ^= 1;
    storage_->Write(name, bytes);
  }

  const std::unique_ptr<testing::Storage> storage_ = testing::Storage::Make(GetParam());
};

}  // namespace crout

#endif  // CROUT_TESTS_SERVER_ENGINE_CACHE_STORE_TIER_FIXTURE_H_
