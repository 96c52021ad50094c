// SPDX-License-Identifier: Apache-2.0

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/cache/handle.h"
#include "server/engine/cache/removal.h"

namespace crout::handle_test {
namespace {

TEST(HandleTest, TextGoesBothWays) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const Handle handle = Handle::Random();
    const std::string text = handle.ToString();
    EXPECT_EQ(text.size(), 26u);
    EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567"), std::string::npos);
    EXPECT_EQ(Handle::Parse(text), handle);
    EXPECT_TRUE(seen.insert(text).second);
  }
}

TEST(HandleTest, ConvertsToAndFromText) {
  // The expected texts are results of Python's base64.b32encode in lower case, without padding.
  EXPECT_EQ(Handle().ToString(), "aaaaaaaaaaaaaaaaaaaaaaaaaa");
  const auto ones = Handle::Parse("77777777777777777777777774");
  ASSERT_TRUE(ones.has_value());
  EXPECT_EQ(ones->ToString(), "77777777777777777777777774");
  EXPECT_NE(*ones, Handle());
}

TEST(HandleTest, NamesItsProcess) {
  EXPECT_TRUE(Handle::Random().IsOfThisProcess());
  std::string other = Handle::Random().ToString();
  other[20] = other[20] == 'a' ? 'b' : 'a';  // 5 of the last 32 bits
  EXPECT_FALSE(Handle::Parse(other)->IsOfThisProcess());
}

TEST(HandleTest, RefusesEverythingElse) {
  const std::string good = Handle::Random().ToString();
  EXPECT_FALSE(Handle::Parse("").has_value());
  EXPECT_FALSE(Handle::Parse(good.substr(1)).has_value());
  EXPECT_FALSE(Handle::Parse(good + "a").has_value());
  for (const char bad : {'A', '0', '1', '8', '9', '=', ' ', '\0'}) {
    std::string text = good;
    text[5] = bad;
    EXPECT_FALSE(Handle::Parse(text).has_value()) << bad;
  }
  // 26 characters encode 130 bits. The last two bits must be zero.
  EXPECT_FALSE(Handle::Parse("aaaaaaaaaaaaaaaaaaaaaaaaab").has_value());
  EXPECT_FALSE(Handle::Parse("aaaaaaaaaaaaaaaaaaaaaaaaac").has_value());
  EXPECT_TRUE(Handle::Parse("aaaaaaaaaaaaaaaaaaaaaaaaae").has_value());
}

TEST(TombstonesTest, StoresTheLatest) {
  Tombstones tombstones(/*capacity=*/2);
  const Handle handles[] = {Handle::Random(), Handle::Random(), Handle::Random()};
  EXPECT_EQ(tombstones.Find(handles[0]), nullptr);
  tombstones.Add(Tombstones::Make(handles[0], "a"), Removal::kEvicted);
  tombstones.Add(Tombstones::Make(handles[1], "b"), Removal::kExpired);
  ASSERT_NE(tombstones.Find(handles[0]), nullptr);
  tombstones.Add(Tombstones::Make(handles[2], "c"), Removal::kReleased);
  EXPECT_EQ(tombstones.Find(handles[0]), nullptr);
  ASSERT_NE(tombstones.Find(handles[1]), nullptr);
  EXPECT_EQ(tombstones.Find(handles[1])->tenant, "b");
  EXPECT_EQ(tombstones.Find(handles[2])->cause, Removal::kReleased);
}

}  // namespace
}  // namespace crout::handle_test
