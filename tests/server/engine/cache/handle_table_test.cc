// SPDX-License-Identifier: Apache-2.0

// Tests the table of handles: owners, leases, lists and removals.
#include "server/engine/cache/handle_table.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"

namespace crout::handle_table_test {
namespace {

using ::testing::ElementsAre;
using Entry = HandleTable::Entry;

class HandleTableTest : public ::testing::Test {
 protected:
  Entry& Insert(const std::string& tenant, const std::string& name, absl::Duration lease,
                absl::Duration life = absl::InfiniteDuration(), bool listed = true) {
    const InsertOptions options = {.tenant = tenant,
                                   .name = name,
                                   .request_id = "",
                                   .lease = lease,
                                   .life = life,
                                   .listed = listed};
    return table_.Insert(std::make_unique<Entry>(options, loads_.Open(tenant), start_));
  }
  CacheMiss MissAt(const Handle& handle, const std::string& tenant, absl::Time now) {
    CacheMiss miss = CacheMiss::kDataLoss;
    EXPECT_FALSE(table_.Find(tenant, handle, now, &miss).ok());
    return miss;
  }
  bool IsFound(const Handle& handle, const std::string& tenant, absl::Time now) {
    CacheMiss miss;
    return table_.Find(tenant, handle, now, &miss).ok();
  }
  std::vector<std::string> Names(const std::string& tenant, const std::string& name, int64_t before,
                                 size_t limit, int64_t* next) {
    std::vector<std::string> names;
    for (const Entry* entry : table_.List(tenant, name, before, limit, next)) {
      names.push_back(entry->name);
    }
    return names;
  }

  const absl::Time start_ = absl::UnixEpoch();
  TenantLoads loads_;
  HandleTable table_;
};

TEST_F(HandleTableTest, OnlyTheOwnerGetsTheCauseOfARemoval) {
  const Handle handle = Insert("a", "", absl::Minutes(1)).handle;
  EXPECT_TRUE(IsFound(handle, "a", start_));
  EXPECT_EQ(MissAt(handle, "b", start_), CacheMiss::kOtherTenant);
  EXPECT_EQ(MissAt(Handle::Random(), "a", start_), CacheMiss::kUnknown);
  EXPECT_EQ(MissAt(Handle(), "a", start_), CacheMiss::kRestarted) << "of another process";
  table_.Remove(handle, Removal::kEvicted);
  EXPECT_EQ(MissAt(handle, "a", start_), CacheMiss::kEvicted);
  EXPECT_EQ(MissAt(handle, "b", start_), CacheMiss::kOtherTenant);
  EXPECT_EQ(table_.size(), 0);
}

TEST_F(HandleTableTest, AUseDelaysTheEndOfTheLeaseButNotOfTheLife) {
  Entry& entry = Insert("a", "", absl::Minutes(1), absl::Minutes(3));
  EXPECT_TRUE(IsFound(entry.handle, "a", start_ + absl::Seconds(59)));
  EXPECT_EQ(MissAt(entry.handle, "a", start_ + absl::Minutes(1)), CacheMiss::kExpired);
  EXPECT_EQ(table_.FirstEnded(start_ + absl::Seconds(59)), nullptr);
  EXPECT_EQ(table_.FirstEnded(start_ + absl::Minutes(1)), &entry);
  table_.Reschedule(entry, [&] { ++entry.uses; });
  EXPECT_EQ(table_.FirstEnded(start_ + absl::Minutes(2)), nullptr);
  EXPECT_EQ(entry.LeaseEnd(start_ + absl::Minutes(1)), start_ + absl::Minutes(2));
  EXPECT_EQ(entry.LeaseEnd(start_ + absl::Minutes(5)), entry.life_end);
  EXPECT_EQ(table_.FirstEnded(start_ + absl::Minutes(3)), &entry);
}

TEST_F(HandleTableTest, ALeaseIsNotShortenedWhenTheClockIsSetBack) {
  Entry& entry = Insert("a", "", absl::Minutes(1));
  EXPECT_EQ(entry.LeaseFrom(start_ - absl::Hours(1)), start_ + absl::Minutes(1));
}

TEST_F(HandleTableTest, ListsByNameAndInPagesNewestFirst) {
  Insert("a", "x", absl::Minutes(1));
  Insert("a", "y", absl::Minutes(1));
  Insert("b", "z", absl::Minutes(1));
  Insert("a", "part", absl::Minutes(1), absl::InfiniteDuration(), /*listed=*/false);
  Insert("a", "x", absl::Minutes(1));
  int64_t next = 0;
  EXPECT_THAT(Names("a", "", 0, 2, &next), ElementsAre("x", "y"));
  EXPECT_NE(next, 0);
  EXPECT_THAT(Names("a", "", next, 2, &next), ElementsAre("x"));
  EXPECT_EQ(next, 0);
  EXPECT_THAT(Names("a", "y", 0, 5, &next), ElementsAre("y"));
  EXPECT_THAT(Names("c", "", 0, 5, &next), ElementsAre());
}

}  // namespace
}  // namespace crout::handle_table_test
