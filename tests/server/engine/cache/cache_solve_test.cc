// SPDX-License-Identifier: Apache-2.0

// Tests that every factor still solves its system if the factors exceed the device's budget.
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::cache_solve_test {
namespace {

constexpr int64_t kN = 33;
constexpr int64_t kRhs = 2;
constexpr int kFit = 4;    // factors that fit on the device
constexpr int kExtra = 3;  // further factors
constexpr size_t kPerFactor = FactorCache::Charge(2 * BlockBytes(kN * kN * sizeof(double)) +
                                                  BlockBytes(kN * sizeof(int64_t)));

class CacheSolveTest : public CacheTest {
 protected:
  testing::HostMatrix Matrix(int id) { return testing::RandomMatrix(kN, kN, 100 + id); }

  absl::StatusOr<Handle> Factor(int id) {
    auto room = cache_->ReserveOnDevice(slot(), kPerFactor);
    if (!room.ok()) return room.status();
    testing::JobRunner runner(device());
    auto factorization = runner.Factor(Matrix(id), kN, {});
    if (!factorization.ok()) return factorization.status();
    EXPECT_EQ(factorization->parts.bytes() + FactorCache::kEntryBytes, kPerFactor);
    NewFactor factor;
    factor.factorization = *std::move(factorization);
    factor.reservation = *std::move(room);
    factor.slot = &slot();
    InsertOptions options;
    options.tenant = kTenant;
    options.lease = absl::Hours(1);
    CROUT_ASSIGN_OR_RETURN(const FactorInfo info, cache_->Insert(std::move(factor), options));
    return info.handle;
  }

  // Solves and checks the solution. Returns true if the factor was promoted from host memory.
  bool SolveAndCheck(const Handle& handle, int id) {
    bool promoted = false;
    Solve(handle, id, &promoted);
    return promoted;
  }

 private:
  void Solve(const Handle& handle, int id, bool* promoted) {
    ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, handle));
    Reservation room;
    if (pin.promotion_bytes() > 0) {
      ASSERT_OK_AND_ASSIGN(room, cache_->ReserveOnDevice(pin.slot(), pin.promotion_bytes()));
    }
    testing::JobRunner runner(device());
    ASSERT_OK_AND_ASSIGN(const Factorization* factor,
                         pin.OnDevice(runner.context(), std::move(room), promoted));
    const testing::HostMatrix b = testing::RandomMatrix(kN, kRhs, id);
    ASSERT_OK_AND_ASSIGN(const testing::Solution solution, runner.Solve(*factor, b, kRhs, {}));
    EXPECT_LT(testing::SolveRatio(Matrix(id), kN, Op::kNone, solution.x, b, kRhs, DType::kFloat64),
              testing::kThreshold);
    ASSERT_TRUE(solution.summary.backward_error.has_value());
    EXPECT_LT(*solution.summary.backward_error, 1e-13);
  }
};

TEST_F(CacheSolveTest, FactorsBeyondDeviceMemoryStillSolve) {
  const size_t units = kFit * kPerFactor / kUnit + 1;
  Start(/*device_units=*/units, /*host_units=*/64);
  std::vector<Handle> handles;
  for (int id = 0; id < kFit + kExtra; ++id) {
    ASSERT_OK_AND_ASSIGN(const Handle handle, Factor(id));
    handles.push_back(handle);
  }
  EXPECT_EQ(cache_->tiers()[0].entries, kFit);
  EXPECT_EQ(cache_->tiers()[1].entries, kExtra);

  int promotions = 0;
  for (int round = 0; round < 2; ++round) {
    for (int id = 0; id < kFit + kExtra; ++id) promotions += SolveAndCheck(handles[id], id);
  }
  EXPECT_GE(promotions, kExtra);
  EXPECT_EQ(Metric("crout_cache_promotions_total"), promotions);
  EXPECT_EQ(Metric("crout_cache_promotion_seconds_count"), promotions);
  EXPECT_GT(Metric("crout_cache_promotion_seconds_sum"), 0);
  EXPECT_EQ(Metric("crout_cache_hits_total{tier=\"host\"}"), promotions);
  EXPECT_EQ(Metric("crout_cache_evictions_total{reason=\"pressure\",tier=\"device\"}"),
            promotions + kExtra);
  EXPECT_EQ(Metric("crout_cache_evictions_total{reason=\"pressure\",tier=\"host\"}"), 0);

  for (const Handle& handle : handles) EXPECT_OK(cache_->Release(kTenant, handle));
  EXPECT_EQ(slot().budget->reserved(), 0u);
  EXPECT_EQ(pool_->host_budget().reserved(), 0u);
  EXPECT_EQ(device().counting_memory().live_bytes(), 0u);
}

}  // namespace
}  // namespace crout::cache_solve_test
