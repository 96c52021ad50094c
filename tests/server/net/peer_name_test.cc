// SPDX-License-Identifier: Apache-2.0

// Tests the names of peers, to whose shares calls are charged.
#include "server/net/peer_name.h"

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace crout::peer_name_test {
namespace {

std::string Share(const std::string& peer, const std::string& identity = "") {
  return CallMemoryAccount(peer, "", identity, TrustedProxies());
}

TEST(PeerNameTest, AConnectionUsesTheShareOfItsAddress) {
  EXPECT_EQ(Share("ipv4:10.0.0.7:50051"), Share("ipv4:10.0.0.7:1"));
  EXPECT_NE(Share("ipv4:10.0.0.7:50051"), Share("ipv4:10.0.0.8:50051"));
  EXPECT_EQ(Share("ipv4:10.0.0.7:50051"), Share("ipv6:%5B::ffff:10.0.0.7%5D:50051"));
  EXPECT_NE(Share("ipv4:10.0.0.7:50051"), "");
}

TEST(PeerNameTest, TheFirst64BitsOfAnIpv6AddressCount) {
  EXPECT_EQ(Share("ipv6:%5B2001:db8::7%5D:1"), Share("ipv6:[2001:db8::ffff:8]:2"));
  EXPECT_NE(Share("ipv6:%5B2001:db8::7%5D:1"), Share("ipv6:%5B2001:db8:0:1::7%5D:1"));
  EXPECT_EQ(Share("ipv6:%5Bfe80::1%25eth0%5D:1"), Share("ipv6:%5Bfe80::2%5D:1"));
}

TEST(PeerNameTest, AnIdentityTakesPrecedenceOverTheAddress) {
  EXPECT_EQ(Share("ipv4:10.0.0.7:1", "alice"), Share("unix:", "alice"));
  EXPECT_NE(Share("ipv4:10.0.0.7:1", "alice"), Share("ipv4:10.0.0.7:1", "bob"));
}

TEST(PeerNameTest, UsersOfUnixSocketsHaveSeparateShares) {
  const TrustedProxies none;
  EXPECT_NE(CallMemoryAccount("unix:", "1000", "", none),
            CallMemoryAccount("unix:", "1001", "", none));
  EXPECT_EQ(CallMemoryAccount("unix:/bound/by/the/client", "1000", "", none),
            CallMemoryAccount("unix:", "1000", "", none));
  EXPECT_NE(CallMemoryAccount("unix:", "", "", none), "");
}

TEST(PeerNameTest, TrustedProxiesHaveNoShare) {
  const auto proxies = TrustedProxies::Parse({"10.1.0.0/16", "192.0.2.9", "2001:db8::/32", "unix"});
  ASSERT_TRUE(proxies.ok()) << proxies.status();
  for (const std::string proxy : {"ipv4:10.1.2.3:1", "ipv6:%5B::ffff:10.1.2.3%5D:1",
                                  "ipv4:192.0.2.9:1", "ipv6:%5B2001:db8:9::1%5D:1", "unix:"}) {
    EXPECT_EQ(CallMemoryAccount(proxy, "", "", *proxies), "") << proxy;
    EXPECT_NE(CallMemoryAccount(proxy, "", "alice", *proxies), "") << proxy;
  }
  for (const std::string other :
       {"ipv4:10.2.2.3:1", "ipv4:192.0.2.8:1", "ipv6:%5B2001:db9::1%5D:1"}) {
    EXPECT_NE(CallMemoryAccount(other, "", "", *proxies), "") << other;
  }
}

TEST(PeerNameTest, EveryAddressIsInTheEmptyNetwork) {
  const auto proxies = TrustedProxies::Parse({"0.0.0.0/0"});
  ASSERT_TRUE(proxies.ok()) << proxies.status();
  EXPECT_TRUE(proxies->Has("ipv4:203.0.113.1:1"));
  EXPECT_FALSE(proxies->Has("ipv6:%5B2001:db8::1%5D:1"));
}

TEST(PeerNameTest, AnythingElseIsNoProxy) {
  for (const std::string bad : {"", "example.org", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/",
                                "10.0.0.0/8/8", "::/129", "unix:", "/8"}) {
    EXPECT_EQ(TrustedProxies::Parse({bad}).status().code(), absl::StatusCode::kInvalidArgument)
        << bad;
  }
}

}  // namespace
}  // namespace crout::peer_name_test
