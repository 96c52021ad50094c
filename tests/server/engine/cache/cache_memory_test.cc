// SPDX-License-Identifier: Apache-2.0

// Tests failed allocations: each cache operation completes or leaves the cache unchanged, whichever
// of its allocations fails.
#include <new>
#include <string>
#include <tuple>
#include <vector>

#include "server/engine/error.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/support/memory/refused_allocations.h"
#include "tests/support/status_matchers.h"

namespace crout::cache_memory_test {
namespace {

using testing::RefuseAfter;
using testing::StopRefusing;
using testing::Threads;

class CacheMemoryTest : public CacheTest {
 protected:
  // The state of the cache that its users can observe.
  struct State {
    std::vector<std::tuple<std::string, int64_t, int64_t>> listed;  // handle, version, fill
    std::vector<std::tuple<std::string, int64_t, int64_t>> named;
    std::array<std::pair<int64_t, int64_t>, 2> tiers;
    size_t size = 0;
    size_t device_bytes = 0;  // reserved bytes
    size_t host_bytes = 0;
    size_t idle_bytes = 0;

    friend bool operator==(const State&, const State&) = default;
  };
  State ReadState() {
    State state;
    int64_t next = 0;
    for (const FactorInfo& info : cache_->List(kTenant, "", 0, 100, &next)) {
      state.listed.emplace_back(info.handle.ToString(), info.version, info.summary.n);
    }
    for (const FactorInfo& info : cache_->List(kTenant, kName, 0, 100, &next)) {
      state.named.emplace_back(info.handle.ToString(), info.version, info.summary.n);
    }
    const TierStates tiers = cache_->tiers();
    for (size_t i = 0; i < tiers.size(); ++i) state.tiers[i] = {tiers[i].entries, tiers[i].bytes};
    state.size = cache_->size();
    state.device_bytes = slot().budget->reserved();
    state.host_bytes = pool_->host_budget().reserved();
    state.idle_bytes = slot().idle_bytes;
    return state;
  }

  static InsertOptions Options(const std::string& request_id = "") {
    return {.tenant = std::string(kTenant),
            .name = kName,
            .request_id = request_id,
            .lease = absl::Hours(1)};
  }

  // Calls work() repeatedly: its first allocation fails in the first call, its second in the
  // second, and so on, until no allocation fails. Calls prepare() before each call, and refused()
  // after each call in which an allocation failed. Returns the number of these.
  template <class Prepare, class Work, class Refused>
  static int RefuseEach(Prepare prepare, Work work, Refused refused) {
    for (int count = 0;; ++count) {
      SCOPED_TRACE("allocation " + std::to_string(count));
      prepare();
      RefuseAfter(count, Threads::kThis);
      try {
        work();
      } catch (const std::bad_alloc&) {
      }
      if (!StopRefusing()) return count;
      refused();
    }
  }

  // Expects that every factor can be used, demoted, promoted and released.
  void ExpectWorks() {
    int64_t next = 0;
    for (const FactorInfo& info : cache_->List(kTenant, "", 0, 100, &next)) {
      const absl::StatusOr<char> used = Use(info.handle);
      ASSERT_OK(used);
      EXPECT_EQ(*used, info.summary.n);
    }
    for (int i = 0; i < 3 * kUnits; ++i) Put('w');
    EXPECT_EQ(cache_->size(), 2u * kUnits) << "as many as there is room for";
    for (const FactorInfo& info : cache_->List(kTenant, "", 0, 100, &next)) {
      EXPECT_OK(cache_->Release(kTenant, info.handle));
    }
    EXPECT_EQ(ReadState(), State());
  }

  static constexpr int kUnits = 4;
  static constexpr char kName[] = "a name that no small string holds";
};

TEST_F(CacheMemoryTest, Insert) {
  Start(kUnits, kUnits);
  Put('a', kUnit, 0, Options());
  const State before = ReadState();
  NewFactor factor;
  EXPECT_GT(RefuseEach(
                [&] {
                  auto made = Make('b');
                  ASSERT_OK(made);
                  factor = *std::move(made);
                },
                [&] {
                  // No assertion, because it would allocate.
                  cache_->Insert(std::move(factor), Options("a request id, not short either"))
                      .status()
                      .IgnoreError();
                },
                [&] {
                  factor = {};
                  EXPECT_EQ(ReadState(), before);
                  // The request ID is not claimed either.
                  EXPECT_FALSE(cache_->request_ids().Await(
                      kTenant, "a request id, not short either", nullptr));
                }),
            0);
  EXPECT_EQ(cache_->size(), 2u);
  ExpectWorks();
}

TEST_F(CacheMemoryTest, InsertWithAClaimedRequestId) {
  Start(kUnits, kUnits);
  const std::string id = "a request id, not short either";
  ASSERT_OK(cache_->ClaimRequest(kTenant, id));
  const State before = ReadState();
  NewFactor factor;
  EXPECT_GT(
      RefuseEach(
          [&] {
            auto made = Make('b');
            ASSERT_OK(made);
            factor = *std::move(made);
          },
          [&] { cache_->Insert(std::move(factor), Options(id)).status().IgnoreError(); },
          [&] {
            factor = {};
            EXPECT_EQ(ReadState(), before);
            EXPECT_EQ(cache_->ClaimRequest(kTenant, id).status().code(), absl::StatusCode::kAborted)
                << "the claim stands";
          }),
      0);
  const auto living = cache_->ClaimRequest(kTenant, id);
  ASSERT_OK(living);
  ASSERT_TRUE(living->has_value());
  EXPECT_EQ((*living)->summary.n, 'b');
  ExpectWorks();
}

TEST_F(CacheMemoryTest, Replace) {
  Start(kUnits, kUnits);
  const Handle handle = Put('a', kUnit, 0, Options());
  const State before = ReadState();
  NewFactor factor;
  EXPECT_GT(RefuseEach(
                [&] {
                  auto made = Make('b');
                  ASSERT_OK(made);
                  factor = *std::move(made);
                },
                [&] { (void)cache_->Replace(kTenant, handle, std::move(factor)); },
                [&] {
                  factor = {};
                  EXPECT_EQ(ReadState(), before);
                }),
            0);
  EXPECT_EQ(cache_->Describe(kTenant, handle)->version, 2);
  EXPECT_EQ(DeviceUnits(), 1u) << "the first version's memory is free";
  ExpectWorks();
}

TEST_F(CacheMemoryTest, Release) {
  Start(kUnits, kUnits);
  Put('a', kUnit, 0, Options());
  const Handle handle = Put('b', kUnit, 0, Options());
  const State before = ReadState();
  RefuseEach([] {}, [&] { (void)cache_->Release(kTenant, handle); },
             [&] { EXPECT_EQ(ReadState(), before); });
  EXPECT_EQ(ReasonGone(handle), kReasonHandleReleased);
  ExpectWorks();
}

TEST_F(CacheMemoryTest, Acquire) {
  Start(kUnits, kUnits);
  const Handle handle = Put('a', kUnit, 0, Options());
  const State before = ReadState();
  EXPECT_GT(
      RefuseEach([] {}, [&] { (void)cache_->Acquire("nobody who has a factor here", handle); },
                 [&] { EXPECT_EQ(ReadState(), before); }),
      0);
  auto pin = cache_->Acquire(kTenant, handle);
  ASSERT_OK(pin);
  RefuseAfter(0, Threads::kThis);
  { const FactorCache::Pin gone = *std::move(pin); }  // the pin's destructor must not allocate
  StopRefusing();
  EXPECT_EQ(ReadState(), before);
  ExpectWorks();
}

TEST_F(CacheMemoryTest, Sweep) {
  Start(kUnits, kUnits);
  Put('a', kUnit, 0, Options());
  const State before = ReadState();
  EXPECT_GT(RefuseEach(
                [&] {
                  InsertOptions soon = Options();
                  soon.lease = absl::Minutes(1);
                  Put('b', kUnit, 0, soon);
                  Advance(absl::Minutes(2));
                },
                [&] { cache_->Sweep(); }, [&] { cache_->Sweep(); }),
            0);
  Sweep();
  EXPECT_EQ(ReadState(), before);
  ExpectWorks();
}

// A factor may be lost while it is demoted, but its memory returns to the budget.
TEST_F(CacheMemoryTest, Eviction) {
  Start(/*device_units=*/1, /*host_units=*/1);
  Handle handle;
  EXPECT_GT(RefuseEach([&] { handle = Put('a', kUnit, 0, Options()); },
                       [&] { (void)cache_->ReserveOnDevice(slot(), kUnit); },
                       [&] {
                         EXPECT_OK(cache_->ReserveOnDevice(slot(), kUnit));
                         EXPECT_OK(cache_->ReserveOnHost(kUnit));
                         EXPECT_EQ(cache_->size(), 0u);
                       }),
            0);
}

}  // namespace
}  // namespace crout::cache_memory_test
