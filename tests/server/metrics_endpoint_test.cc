#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/metrics/exposition.h"
#include "tests/server/scrape.h"

namespace crout {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::StartsWith;

// The whole reply to GET `path` on 127.0.0.1.
std::string Get(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string reply;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request =
        absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    if (write(fd, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
      char buffer[4096];
      for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) {
        reply.append(buffer, static_cast<size_t>(n));
      }
    }
  }
  close(fd);
  return reply;
}

int PortOf(const MetricsEndpoint& endpoint) {
  int port = 0;
  EXPECT_TRUE(
      absl::SimpleAtoi(endpoint.address().substr(endpoint.address().rfind(':') + 1), &port));
  return port;
}

TEST(MetricsEndpointTest, ServesTheMetricsOnAPortItPicked) {
  Metrics metrics({});
  metrics.CountSent(5);
  auto endpoint = MetricsEndpoint::Start("127.0.0.1:0", metrics);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_THAT((*endpoint)->address(), StartsWith("127.0.0.1:"));
  const int port = PortOf(**endpoint);
  EXPECT_NE(port, 0);
  const std::string reply = Get(port, "/metrics");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(SampleOf(reply, "crout_sent_bytes_total"), Optional(5));
}

TEST(MetricsEndpointTest, ServesNothingElse) {
  Metrics metrics({});
  auto endpoint = MetricsEndpoint::Start("127.0.0.1:0", metrics);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_THAT(Get(PortOf(**endpoint), "/"), StartsWith("HTTP/1.1 404"));
}

TEST(MetricsEndpointTest, StopsAtOnce) {
  Metrics metrics({});
  auto endpoint = MetricsEndpoint::Start("127.0.0.1:0", metrics);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const auto start = std::chrono::steady_clock::now();
  endpoint->reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST(MetricsEndpointTest, TakenPortIsUnavailable) {
  Metrics metrics({});
  auto first = MetricsEndpoint::Start("127.0.0.1:0", metrics);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(MetricsEndpoint::Start((*first)->address(), metrics).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(MetricsEndpointTest, MalformedAddressIsInvalid) {
  Metrics metrics({});
  for (const char* address : {"", "localhost", "127.0.0.1:", ":9", "127.0.0.1:70000", "127.0.0.1:x",
                              "127.0.0.1:0,127.0.0.1:0"}) {
    EXPECT_EQ(MetricsEndpoint::Start(address, metrics).status().code(),
              absl::StatusCode::kInvalidArgument)
        << address;
  }
}

}  // namespace
}  // namespace crout
