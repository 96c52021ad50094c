// SPDX-License-Identifier: Apache-2.0

// Fuzzes the server of the metrics port with any bytes in two pieces. The server must reply in HTTP
// or close the connection, and must still reply to later requests.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/net/http_server.h"
#include "tests/support/peers/http_peer.h"

namespace crout {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

HttpServer& Server() {
  static HttpServer* const server = [] {
    HttpRoutes routes;
    routes["/page"] = {.make = [] { return HttpPage{.body = "a page\n"}; }};
    routes["/slow"] = {.make = [] { return HttpPage{.body = std::string(10000, 'x')}; },
                       .may_block = true};
    auto started = HttpServer::Start("127.0.0.1:0", std::move(routes));
    Require(started.ok());
    return std::move(started)->release();
  }();
  return *server;
}

}  // namespace
}  // namespace crout

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using crout::testing::HttpPeer;
  FuzzedDataProvider input(data, size);
  const size_t cut = input.ConsumeIntegralInRange<size_t>(0, size);
  const std::string request = input.ConsumeRemainingBytesAsString();
  {
    HttpPeer peer(crout::Server().address());
    crout::Require(peer.connected());
    peer.Send(std::string_view(request).substr(0, cut));
    peer.Send(std::string_view(request).substr(std::min(cut, request.size())));
    peer.HalfClose();
    const std::string reply = peer.ReadToEnd();
    crout::Require(reply.empty() || reply.rfind("HTTP/1.", 0) == 0);
  }
  static int count = 0;
  if (++count % 256 == 0) {
    const std::string reply =
        crout::testing::HttpRequest(crout::Server().address(), "GET", "/page");
    crout::Require(reply.rfind("HTTP/1.1 200 OK\r\n", 0) == 0);
  }
  return 0;
}
