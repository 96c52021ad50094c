// SPDX-License-Identifier: Apache-2.0

// Tests the metrics port of a real daemon, in which linked libraries use a part of the stack of
// each thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/support/peers/http_peer.h"

namespace crout::e2e::operations_pages_test {
namespace {

using crout::testing::HttpPeer;
using crout::testing::HttpRequest;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(OperationsPagesTest, EveryPathAndMethodIsAnswered) {
  Daemon daemon;
  EXPECT_THAT(daemon.Get("/healthz"), EndsWith("\r\n\r\nok\n"));
  EXPECT_THAT(daemon.Get("/readyz"), EndsWith("\r\n\r\nready\n"));
  const std::string metrics = daemon.Get("/metrics");
  EXPECT_THAT(metrics, HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(metrics, HasSubstr("\ncrout_build_info{"));
  const std::string index = daemon.Get("/");
  for (const char* path : {"/metrics", "/healthz", "/readyz"}) {
    EXPECT_THAT(index, HasSubstr(std::string("href=\"") + path + "\""));
    EXPECT_THAT(HttpRequest(daemon.metrics_address(), "HEAD", path), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(HttpRequest(daemon.metrics_address(), "POST", path), StartsWith("HTTP/1.1 405"));
  }
  for (const char* path : {"/favicon.ico", "/metrics/", "/debug/pprof", "/%2e%2e/etc/passwd"}) {
    EXPECT_THAT(daemon.Get(path), StartsWith("HTTP/1.1 404")) << path;
    EXPECT_THAT(HttpRequest(daemon.metrics_address(), "HEAD", path), StartsWith("HTTP/1.1 404"));
  }
  EXPECT_TRUE(daemon.process().running());
}

TEST(OperationsPagesTest, ReadinessEndsWithTheDrainAndLifeDoesNot) {
  Daemon daemon({"--drain-grace=1h"});
  EXPECT_THAT(daemon.Get("/readyz"), StartsWith("HTTP/1.1 200"));
  daemon.process().Signal(SIGTERM);
  EXPECT_TRUE(Eventually([&] { return daemon.Get("/readyz").rfind("HTTP/1.1 503", 0) == 0; }));
  EXPECT_THAT(daemon.Get("/readyz"), EndsWith("\r\n\r\nnot ready\n"));
  EXPECT_THAT(daemon.Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(daemon.ScrapeMetrics(), StartsWith("HTTP/1.1 200"));
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(), 0);
}

// There are more unfinished requests than the port serves at a time. The scrape must not wait until
// they time out: the newest, which begins just before the scrape, must be open after it.
TEST(OperationsPagesTest, HalfSentRequestsDoNotDelayAScrape) {
  constexpr absl::Duration kRequestTime = absl::Seconds(5);  // request timeout of the port
  Daemon daemon;
  EXPECT_TRUE(SeenWithin(kRequestTime, [&] {
    std::vector<std::unique_ptr<HttpPeer>> peers;
    for (int i = 0; i < 600; ++i) {
      peers.push_back(std::make_unique<HttpPeer>(daemon.metrics_address()));
      EXPECT_TRUE(peers.back()->connected());
      peers.back()->Send("GET /metrics HTTP/1.1\r\nHost: ");
    }
    EXPECT_THAT(daemon.ScrapeMetrics(), HasSubstr("\ncrout_build_info{"));
    peers.back()->Send("test\r\n\r\n");
    return peers.back()->ReadReply().starts_with("HTTP/1.1 200");
  }));
}

}  // namespace
}  // namespace crout::e2e::operations_pages_test
