// SPDX-License-Identifier: Apache-2.0

// Sends malformed HTTP to the metrics port of a real daemon for 3 s, or for $CROUT_FUZZ_SECONDS.
// tests/fuzz/http_fuzz.cc tests the HTTP server alone, guided by coverage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/support/peers/http_peer.h"

namespace crout::e2e::http_fuzz_test {
namespace {

using crout::testing::HttpPeer;
using ::testing::AnyOf;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::vector<std::string>& Seeds() {
  static const auto* const seeds = new std::vector<std::string>{
      "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip;q=0.5, br\r\n\r\n",
      "HEAD /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
      "POST /readyz HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
      "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      "GET http://a/none?x=y#z HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, close\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /readyz HTTP/1.1\r\nHost: a\r\n\r\n",
  };
  return *seeds;
}

const std::vector<std::string>& Words() {
  static const auto* const words =
      new std::vector<std::string>{"\r\n",
                                   "\n",
                                   "\r",
                                   " ",
                                   "\t",
                                   ":",
                                   ";q=0",
                                   "HTTP/9.9",
                                   "HTTP/1.1",
                                   "%00",
                                   std::string(1, '\0'),
                                   "Host: b\r\n",
                                   "Content-Length: 18446744073709551616\r\n",
                                   "Content-Length: -1\r\n",
                                   "Transfer-Encoding: chunked, chunked\r\n",
                                   " folded\r\n",
                                   std::string(9000, 'x'),
                                   std::string(70000, '\n'),
                                   "\xff\xfe",
                                   "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"};
  return *words;
}

// Returns requests from a list, each with up to eight mutations.
class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  size_t Below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  std::string Next() {
    std::string text = Any(Seeds());
    for (size_t mistakes = Below(9); mistakes > 0; --mistakes) Mutate(text);
    return text;
  }

 private:
  const std::string& Any(const std::vector<std::string>& from) { return from[Below(from.size())]; }

  void Mutate(std::string& text) {
    const size_t at = Below(text.size() + 1);
    switch (Below(5)) {
      case 0:
        text.insert(at, Any(Words()));
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(Below(256)));
        break;
      case 2:
        text.erase(at, Below(20));
        break;
      case 3:
        text += text.substr(at, Below(200));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(Below(256));
    }
  }

  std::mt19937 random_;
};

size_t OpenFiles(pid_t pid) {
  const std::filesystem::path files = "/proc/" + std::to_string(pid) + "/fd";
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(files), {}));
}

double FuzzSeconds() {
  const char* seconds = std::getenv("CROUT_FUZZ_SECONDS");
  return seconds == nullptr ? 3 : std::atof(seconds);
}

TEST(HttpFuzzTest, MalformedRequestsDoNoHarm) {
  Daemon daemon;
  const pid_t pid = daemon.process().pid();
  EXPECT_THAT(daemon.ScrapeMetrics(), StartsWith("HTTP/1.1 200"));
  const size_t files = OpenFiles(pid);
  const int64_t resident = StatusBytes(pid, "VmRSS");
  const auto seed = static_cast<uint32_t>(absl::ToUnixMicros(absl::Now()));
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  Mutator mutator(seed);
  int count = 0;
  const absl::Time end = absl::Now() + absl::Seconds(FuzzSeconds());
  for (; absl::Now() < end; ++count) {
    HttpPeer peer(daemon.metrics_address());
    const std::string request = mutator.Next();
    const size_t half = mutator.Below(request.size() + 1);
    peer.Send(std::string_view(request).substr(0, half));
    peer.Send(std::string_view(request).substr(half));
    if (mutator.Below(8) == 0) continue;  // disconnects without closing the sending direction first
    peer.HalfClose();
    ASSERT_THAT(peer.ReadToEnd(), AnyOf(IsEmpty(), StartsWith("HTTP/1.")))
        << ::testing::PrintToString(request);
    ASSERT_TRUE(daemon.process().running()) << ::testing::PrintToString(request);
  }
  std::printf("%d requests, seed %u\n", count, seed);
  EXPECT_THAT(daemon.ScrapeMetrics(), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(Eventually([&] { return OpenFiles(pid) <= files; })) << OpenFiles(pid);
  EXPECT_LT(StatusBytes(pid, "VmRSS"), resident + (64 << 20));
}

}  // namespace
}  // namespace crout::e2e::http_fuzz_test
