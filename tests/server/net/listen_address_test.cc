// SPDX-License-Identifier: Apache-2.0

#include "server/net/listen_address.h"

#include <gtest/gtest.h>

#include <string>

namespace crout::listen_address_test {
namespace {

TEST(ListenAddressTest, ReadsHostAndPort) {
  const struct {
    const char* text;
    const char* host;
    int port;
  } cases[] = {{"127.0.0.1:50051", "127.0.0.1", 50051},
               {"localhost:0", "localhost", 0},
               {"0.0.0.0:65535", "0.0.0.0", 65535},
               {"[::1]:9464", "::1", 9464},
               {"[fe80::1%eth0]:1", "fe80::1%eth0", 1}};
  for (const auto& expected : cases) {
    const auto parsed = ParseHostPort(expected.text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->host, expected.host);
    EXPECT_EQ(parsed->port, expected.port);
    EXPECT_TRUE(CheckListenAddress(expected.text).ok());
  }
}

TEST(ListenAddressTest, RefusesEverythingElse) {
  for (const char* address : {"",
                              ":",
                              "localhost",
                              "127.0.0.1:",
                              ":9",
                              "127.0.0.1:99999",
                              "127.0.0.1:65536",
                              "127.0.0.1:-1",
                              "127.0.0.1:+1",
                              "127.0.0.1: 1",
                              "127.0.0.1:x",
                              "127.0.0.1:1x",
                              "::1:9464",
                              "[::1]",
                              "[]:1",
                              "[localhost]:1",
                              "host:1:2",
                              "127.0.0.1:0,127.0.0.1:0",
                              "a b:1",
                              "http://a:1",
                              "127.0.0.1:99999999999999999999",
                              "unix:"}) {
    EXPECT_EQ(ParseHostPort(address).status().code(), absl::StatusCode::kInvalidArgument)
        << address;
    EXPECT_EQ(CheckListenAddress(address).code(), absl::StatusCode::kInvalidArgument) << address;
  }
}

TEST(ListenAddressTest, UnixPathsFitASocket) {
  EXPECT_TRUE(CheckListenAddress("unix:/run/crout/croutd.sock").ok());
  EXPECT_TRUE(CheckListenAddress("unix:" + std::string(107, 'a')).ok());
  EXPECT_FALSE(CheckListenAddress("unix:" + std::string(108, 'a')).ok());
}

TEST(ListenAddressTest, PortThatWasBoundReplacesZero) {
  EXPECT_EQ(WithPort("127.0.0.1:0", 4711), "127.0.0.1:4711");
  EXPECT_EQ(WithPort("[::1]:0", 4711), "[::1]:4711");
}

}  // namespace
}  // namespace crout::listen_address_test
