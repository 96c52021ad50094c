// SPDX-License-Identifier: Apache-2.0

#include "tests/server/engine/cache/cache_fixture.h"

#include <algorithm>
#include <cstring>
#include <latch>
#include <memory>
#include <utility>

#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "tests/server/scrape.h"
#include "tests/support/status_matchers.h"

namespace crout {
namespace {

// Returns the byte that fills the LU part of `factor`, or '!' if not all bytes are equal.
char FillOf(const Factorization& factor) {
  const std::byte* data = factor.lu().data();
  const bool even =
      std::all_of(data, data + factor.lu().size(), [&](std::byte b) { return b == data[0]; });
  return even ? static_cast<char>(data[0]) : '!';
}

}  // namespace

absl::StatusOr<void*> HostMemoryProbe::DoAllocate(size_t bytes) {
  gate_.Pass();
  CROUT_ASSIGN_OR_RETURN(Buffer block, counting_.Allocate(bytes));
  last_ = block.data();
  void* const data = block.data();
  MutexLock lock(&mutex_);
  blocks_.emplace(data, std::move(block));
  return data;
}

void HostMemoryProbe::DoDeallocate(void* data, size_t) {
  MutexLock lock(&mutex_);
  blocks_.erase(data);
}

void CacheTest::Start(const std::vector<DeviceKind>& kinds, size_t device_units,
                      size_t host_units) {
  MetricsOptions metrics;
  metrics.cuda = "none";
  std::vector<std::shared_ptr<Device>> devices;
  for (const DeviceKind kind : kinds) {
    testing::FakeDeviceOptions options;
    options.kind = kind;
    options.name = kind == DeviceKind::kHost ? "host" : "cuda:" + std::to_string(devices.size());
    auto device = std::make_unique<testing::FakeDevice>(options);
    devices_.push_back(device.get());
    devices.push_back(std::move(device));
    metrics.devices.push_back({.name = options.name, .algorithms = {}, .solvers = {}});
  }
  metrics_ = std::make_unique<Metrics>(metrics);
  DevicePoolOptions options;
  options.scheduler.streams = 1;
  options.device_budget_bytes = device_units * kUnit;
  options.host_budget_bytes = host_units * kUnit;
  auto pool = DevicePool::Create(std::move(devices), options);
  ASSERT_OK(pool);
  pool_ = *std::move(pool);
  cache_ = std::make_unique<FactorCache>(pool_.get(), &host_memory_, metrics_.get(), &loads_,
                                         &quotas_, /*max_pinned_bytes=*/3 * kUnit, files_.get());
}

void CacheTest::End() {
  // Before the cache, because tasks of the pool free memory that is charged to its tenants.
  if (pool_ != nullptr) pool_->Stop();
  cache_.reset();
  pool_.reset();
  devices_.clear();
}

absl::StatusOr<NewFactor> CacheTest::Make(char fill, size_t bytes, size_t slot_index,
                                          std::string_view tenant) {
  NewFactor factor;
  factor.slot = &slot(slot_index);
  CROUT_ASSIGN_OR_RETURN(factor.reservation, cache_->ReserveOnDevice(*factor.slot, bytes, tenant));
  const size_t data = bytes - FactorCache::kEntryBytes;
  CROUT_ASSIGN_OR_RETURN(Buffer lu, device(slot_index).memory().Allocate(data));
  if (data > 0) std::memset(lu.data(), fill, data);
  factor.factorization.parts.Add(kLuPart, PartKind::kFactor, std::move(lu));
  factor.factorization.summary.n = fill;
  return factor;
}

absl::StatusOr<NewFactor> CacheTest::MakeStorable(char fill, std::string_view tenant) {
  constexpr int64_t n = kStorableOrder;
  NewFactor factor;
  factor.slot = &slot();
  CROUT_ASSIGN_OR_RETURN(factor.reservation, cache_->ReserveOnDevice(*factor.slot, kUnit, tenant));
  FactorSummary& summary = factor.factorization.summary;
  summary.algorithm = "getrf";
  summary.n = n;
  MemoryResource& memory = device().memory();
  CROUT_ASSIGN_OR_RETURN(Buffer lu, memory.Allocate(n * n * sizeof(double)));
  CROUT_ASSIGN_OR_RETURN(Buffer ipiv, memory.Allocate(n * sizeof(int64_t)));
  std::memset(lu.data(), fill, lu.size());
  std::memset(ipiv.data(), 0, ipiv.size());
  factor.factorization.parts.Add(kLuPart, PartKind::kFactor, std::move(lu));
  factor.factorization.parts.Add(kIpivPart, PartKind::kFactor, std::move(ipiv));
  return factor;
}

Handle CacheTest::Put(char fill, size_t bytes, size_t slot_index, InsertOptions options) {
  if (options.tenant.empty()) options.tenant = kTenant;
  auto factor = Make(fill, bytes, slot_index, options.tenant);
  EXPECT_OK(factor);
  if (!factor.ok()) return {};
  if (options.lease == absl::ZeroDuration()) options.lease = absl::Hours(1);
  const absl::StatusOr<FactorInfo> inserted = cache_->Insert(*std::move(factor), options);
  EXPECT_OK(inserted);
  return inserted.ok() ? inserted->handle : Handle();
}

absl::StatusOr<char> CacheTest::Use(const Handle& handle, bool* promoted) {
  CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin, cache_->Acquire(kTenant, handle));
  return UsePinned(pin, promoted);
}

absl::StatusOr<char> CacheTest::UsePinned(FactorCache::Pin& pin, bool* promoted) {
  Reservation room;
  if (const size_t bytes = pin.promotion_bytes(); bytes > 0) {
    CROUT_ASSIGN_OR_RETURN(room, cache_->ReserveOnDevice(pin.slot(), bytes, kTenant));
  }
  CROUT_ASSIGN_OR_RETURN(const auto context, pin.slot().device->CreateContext());
  bool moved = false;
  CROUT_ASSIGN_OR_RETURN(const Factorization* factor,
                         pin.OnDevice(*context, std::move(room), &moved));
  if (promoted != nullptr) *promoted = moved;
  return FillOf(*factor);
}

std::string CacheTest::ReasonGone(const Handle& handle, std::string_view tenant) {
  const absl::Status status = cache_->Describe(tenant, handle).status();
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  return ReasonOf(status).value_or("none");
}

void CacheTest::Sweep() {
  cache_->Sweep();
  for (const auto& slot : pool_->slots()) {
    // The latch opens when each releasing thread has finished its earlier tasks.
    auto all = std::make_shared<std::latch>(slot->releasing->thread_count() + 1);
    for (int i = 0; i < slot->releasing->thread_count(); ++i) {
      slot->releasing->Schedule([all] { all->arrive_and_wait(); });
    }
    all->arrive_and_wait();
  }
}

double CacheTest::Metric(std::string_view series) {
  const auto value = SampleOf(metrics_->Scrape(), series);
  EXPECT_TRUE(value.has_value()) << series;
  return value.value_or(-1);
}

}  // namespace crout
