// SPDX-License-Identifier: Apache-2.0

// Tests failed allocations on the threads of an HTTP server: a request may get no reply, but the
// server continues to serve others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "server/net/http_server.h"
#include "tests/support/memory/refused_allocations.h"
#include "tests/support/peers/http_peer.h"

namespace crout::http_memory_test {
namespace {

using crout::testing::HttpPeer;
using crout::testing::HttpRequest;
using crout::testing::RefuseAfter;
using crout::testing::StopRefusing;
using crout::testing::Threads;
using ::testing::EndsWith;

class HttpMemoryTest : public ::testing::TestWithParam<const char*> {};

TEST_P(HttpMemoryTest, ServesAgainAfterMemoryRanOut) {
  HttpRoutes routes;
  routes["/page"] = {.make = [] { return HttpPage{.body = "a page\n"}; }};
  routes["/slow"] = {.make = [] { return HttpPage{.body = "a page\n"}; }, .may_block = true};
  auto server = HttpServer::Start("127.0.0.1:0", std::move(routes),
                                  {.connections = 1 << 20, .request = std::chrono::hours(1)});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string& address = (*server)->address();
  const std::string path = GetParam();
  for (int count = 0;; ++count) {
    SCOPED_TRACE("allocation " + std::to_string(count));
    RefuseAfter(count, Threads::kOthers);
    {
      HttpPeer peer(address);
      peer.Send("GET " + path + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
      peer.ReadReply();
    }
    const bool whole = !StopRefusing();
    ASSERT_THAT(HttpRequest(address, "GET", path), EndsWith("a page\n"));
    if (whole) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Pages, HttpMemoryTest, ::testing::Values("/page", "/slow"),
                         [](const auto& info) { return std::string(info.param + 1); });

}  // namespace
}  // namespace crout::http_memory_test
