// SPDX-License-Identifier: Apache-2.0

// Tests that cache operations visit no more entries than they return, move or remove. The cache
// checks the health of a factor's device on each visit; the test counts these checks.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::cache_index_test {
namespace {

using ::testing::ElementsAre;

constexpr int kMany = 500;

class CacheIndexTest : public CacheTest {
 protected:
  CacheIndexTest() { Start(/*device_units=*/kMany + 16, /*host_units=*/kMany + 16); }

  void PutMany(const std::string& tenant, absl::Duration lease = absl::Hours(1)) {
    for (int i = 0; i < kMany; ++i) {
      Put('m', kUnit, 0, {.tenant = tenant, .name = "", .request_id = "", .lease = lease});
    }
  }
  Handle PutNamed(char fill, const char* name, absl::Duration lease = absl::Hours(1)) {
    return Put(fill, kUnit, 0,
               {.tenant = std::string(kTenant), .name = name, .request_id = "", .lease = lease});
  }
  // Returns the number of factors that `work` visits.
  template <class Work>
  int Visited(Work work) {
    const int before = failpoints_.reached("fake_device.healthy");
    work();
    return failpoints_.reached("fake_device.healthy") - before;
  }
};

TEST_F(CacheIndexTest, AListVisitsOnlyItsPage) {
  PutNamed('a', "rare");
  PutNamed('b', "rare");
  PutMany(std::string(kTenant));
  PutNamed('c', "rare");
  std::vector<int64_t> found;
  int64_t next = 0;
  EXPECT_LE(Visited([&] {
              for (const FactorInfo& info : cache_->List(kTenant, "rare", 0, 100, &next)) {
                found.push_back(info.summary.n);
              }
            }),
            3);
  EXPECT_THAT(found, ElementsAre('c', 'b', 'a'));
  EXPECT_LE(Visited([&] { cache_->List(kTenant, "", 0, 10, &next); }), 10);
  EXPECT_LE(Visited([&] { cache_->List(kTenant, "", next, 10, &next); }), 10);
  EXPECT_EQ(Visited([&] { cache_->List(kTenant, "none", 0, 10, &next); }), 0);
  EXPECT_EQ(Visited([&] { cache_->List("bob", "", 0, 10, &next); }), 0);
}

// A page is shorter if expired factors are not swept yet: the cache does not fill it with later
// factors.
TEST_F(CacheIndexTest, APageOmitsExpiredFactors) {
  PutNamed('a', "x");
  for (int i = 0; i < 20; ++i) PutNamed('m', "x", absl::Minutes(1));
  PutNamed('b', "x");
  Advance(absl::Minutes(1));
  std::vector<int64_t> found;
  int64_t next = 0;
  int pages = 0;
  do {
    for (const FactorInfo& info : cache_->List(kTenant, "x", next, 8, &next)) {
      found.push_back(info.summary.n);
    }
    ++pages;
  } while (next != 0);
  EXPECT_THAT(found, ElementsAre('b', 'a'));
  EXPECT_EQ(pages, 3) << "22 factors, 8 at a time";
}

TEST_F(CacheIndexTest, ASweepVisitsOnlyExpiredFactors) {
  const Handle over = PutNamed('a', "x", absl::Minutes(1));
  PutMany(std::string(kTenant));
  const int devices = 1;
  EXPECT_LE(Visited([&] { Sweep(); }), devices);
  Advance(absl::Minutes(1));
  EXPECT_LE(Visited([&] { Sweep(); }), devices);
  EXPECT_EQ(ReasonGone(over), kReasonHandleExpired);
  EXPECT_EQ(cache_->size(), static_cast<size_t>(kMany));
}

TEST_F(CacheIndexTest, ASweepRemovesManyFactors) {
  const Handle kept = PutNamed('a', "x");
  PutMany("bob", absl::Minutes(1));
  Advance(absl::Minutes(1));
  Sweep();
  EXPECT_EQ(cache_->size(), 1u);
  EXPECT_EQ(cache_->tiers()[0].entries, 1);
  EXPECT_EQ(ReasonGone(kept), "");
  EXPECT_EQ(DeviceUnits(), 1u);
}

}  // namespace
}  // namespace crout::cache_index_test
