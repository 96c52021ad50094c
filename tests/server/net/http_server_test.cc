// SPDX-License-Identifier: Apache-2.0

#include "server/net/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/peers/http_peer.h"
#include "tests/support/timing/gate.h"

namespace crout::http_server_test {
namespace {

using crout::testing::Gate;
using crout::testing::HttpPeer;
using crout::testing::HttpRequest;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGet[] = "GET /page HTTP/1.1\r\nHost: test\r\n\r\n";

size_t StackBytes() {
  pthread_attr_t attributes;
  size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return bytes;
}

HttpRoutes Pages() {
  HttpRoutes routes;
  routes["/page"] = {.make = [] { return HttpPage{.body = "a page\n"}; }};
  routes["/slow"] = {.make = [] { return HttpPage{.body = "made elsewhere\n"}; },
                     .may_block = true};
  routes["/unready"] = {.make = [] { return HttpPage{.status = 503, .body = "not ready\n"}; }};
  routes["/large"] = {.make = [] { return HttpPage{.body = std::string(32 << 20, 'x')}; }};
  routes["/broken"] = {.make = []() -> HttpPage { throw std::bad_alloc(); }};
  routes["/stack"] = {.make = [] { return HttpPage{.body = std::to_string(StackBytes())}; }};
  routes["/slow_stack"] = {.make = [] { return HttpPage{.body = std::to_string(StackBytes())}; },
                           .may_block = true};
  return routes;
}

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpRoutes routes, const HttpLimits& limits = {}) {
    auto server = HttpServer::Start("127.0.0.1:0", std::move(routes), limits);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string Fetch(const std::string& method, const std::string& path) {
    return HttpRequest(server_->address(), method, path);
  }
  // Sends `bytes`, closes the sending direction, and returns all replies.
  std::string SendBytes(const std::string& bytes) {
    HttpPeer peer(server_->address());
    peer.Send(bytes);
    peer.HalfClose();
    return peer.ReadToEnd();
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ServesPagesOnAFreePort) {
  Start(Pages());
  EXPECT_THAT(server_->address(), StartsWith("127.0.0.1:"));
  EXPECT_THAT(server_->address(), Not(EndsWith(":0")));
  for (const char* path : {"/page", "/page?query=1", "http://anywhere:80/page"}) {
    const std::string reply = Fetch("GET", path);
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n")) << path;
    EXPECT_THAT(reply, HasSubstr("Content-Length: 7\r\n"));
    EXPECT_THAT(reply, EndsWith("\r\n\r\na page\n"));
  }
  EXPECT_THAT(Fetch("GET", "/slow"), EndsWith("\r\n\r\nmade elsewhere\n"));
  EXPECT_THAT(Fetch("GET", "/unready"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(Fetch("GET", "/broken"), StartsWith("HTTP/1.1 503"));
}

TEST_F(HttpServerTest, HeadSendsOnlyTheHeader) {
  Start(Pages());
  const std::string reply = Fetch("HEAD", "/page");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(reply, HasSubstr("Content-Length: 7\r\n"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, UnknownPathsAndMethodsAreRefused) {
  Start(Pages());
  for (const char* path : {"/", "/pag", "/page/", "//page", "/../page", "*"}) {
    EXPECT_THAT(Fetch("GET", path), StartsWith("HTTP/1.1 404 Not Found\r\n")) << path;
  }
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"}) {
    const std::string reply = Fetch(method, "/page");
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n")) << method;
    EXPECT_THAT(reply, HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  }
}

TEST_F(HttpServerTest, BodiesAreNotRead) {
  Start(Pages());
  const std::string post = "POST /page HTTP/1.1\r\nHost: test\r\n";
  EXPECT_THAT(SendBytes(post + "Content-Length: 99999999999\r\n\r\nabc"),
              StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(SendBytes(post + "Transfer-Encoding: chunked\r\n\r\nzzz"),
              StartsWith("HTTP/1.1 405"));
  const std::string reply = SendBytes(
      "GET /page HTTP/1.1\r\nHost: test\r\nContent-Length: 30\r\n\r\nGET /page HTTP/1.1\r\n\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(reply.find("HTTP/1.1", 1), std::string::npos) << "the body is no request";
}

TEST_F(HttpServerTest, MalformedHttpIsRefused) {
  Start(Pages());
  for (const char* request :
       {"\r\n\r\n", "GET\r\n\r\n", "GET /page\r\n\r\n", "GET /page HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET /page HTTP/1.1\r\n\r\n", "GET /page HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET /page HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", "\x16\x03\x01\x02\x03 tls\r\n\r\n",
        "GET /page HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}) {
    EXPECT_THAT(SendBytes(request), StartsWith("HTTP/1.1 400 Bad Request\r\n")) << request;
  }
}

TEST_F(HttpServerTest, HeadersAreLimited) {
  Start(Pages(), {.header_bytes = 1000});
  EXPECT_THAT(
      SendBytes("GET /page HTTP/1.1\r\nHost: test\r\nX: " + std::string(900, 'x') + "\r\n\r\n"),
      StartsWith("HTTP/1.1 200"));
  for (const std::string& request :
       {"GET /page HTTP/1.1\r\nHost: test\r\nX: " + std::string(1000, 'x') + "\r\n\r\n",
        "GET /" + std::string(1 << 20, 'x'), std::string(1 << 20, 'x')}) {
    EXPECT_THAT(SendBytes(request), StartsWith("HTTP/1.1 431")) << request.substr(0, 40);
  }
}

TEST_F(HttpServerTest, ConnectionsPersistAccordingToHttp) {
  Start(Pages());
  HttpPeer peer(server_->address());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(peer.Send(kGet));
    EXPECT_THAT(peer.ReadReply(), EndsWith("a page\n"));
  }
  ASSERT_TRUE(peer.Send("HEAD /page HTTP/1.1\r\nHost: test\r\n\r\n" + std::string(kGet)));
  EXPECT_THAT(peer.ReadReply(/*head=*/true), EndsWith("\r\n\r\n"));
  EXPECT_THAT(peer.ReadReply(), EndsWith("a page\n")) << "sent before the reply came";
  ASSERT_TRUE(peer.Send("GET /none HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(peer.ReadReply(), StartsWith("HTTP/1.1 404"));
  EXPECT_TRUE(peer.Closed());

  HttpPeer old(server_->address());
  ASSERT_TRUE(old.Send("GET /page HTTP/1.0\r\n\r\n"));
  const std::string reply = old.ReadReply();
  EXPECT_THAT(reply, StartsWith("HTTP/1.0 200"));
  EXPECT_THAT(reply, EndsWith("a page\n"));
  EXPECT_TRUE(old.Closed());
}

TEST_F(HttpServerTest, PagesAreCompressedForClientsThatAcceptIt) {
  Start(Pages());
  for (const char* path : {"/page", "/slow"}) {
    const std::string reply = SendBytes(std::string("GET ") + path +
                                        " HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    EXPECT_THAT(reply, HasSubstr("Content-Encoding: gzip\r\n")) << path;
    EXPECT_THAT(reply, HasSubstr("\r\n\r\n\x1f\x8b")) << path;
  }
}

// The connection limit is far larger than the number of peers, and their requests do not time out
// during the test.
TEST_F(HttpServerTest, HalfSentRequestsDoNotDelayOthers) {
  Start(Pages(), {.connections = 1000, .request = std::chrono::hours(1)});
  std::vector<std::unique_ptr<HttpPeer>> peers;
  for (int i = 0; i < 400; ++i) {
    peers.push_back(std::make_unique<HttpPeer>(server_->address()));
    ASSERT_TRUE(peers.back()->Send(std::string(kGet).substr(0, i % 30)));
  }
  EXPECT_THAT(Fetch("GET", "/page"), EndsWith("a page\n"));
  EXPECT_THAT(Fetch("GET", "/slow"), EndsWith("made elsewhere\n"));
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(peers[i]->Send(std::string(kGet).substr(i % 30)));
    EXPECT_THAT(peers[i]->ReadReply(), EndsWith("a page\n")) << "each is served all the same";
  }
}

TEST_F(HttpServerTest, ConnectionsBeyondTheLimitReplaceTheLongestIdleOne) {
  Start(Pages(), {.connections = 4, .request = std::chrono::hours(1)});
  HttpPeer kept(server_->address());
  ASSERT_TRUE(kept.Send(kGet));
  EXPECT_THAT(kept.ReadReply(), EndsWith("a page\n"));
  std::vector<std::unique_ptr<HttpPeer>> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(std::make_unique<HttpPeer>(server_->address()));
    // The reply shows that the server has accepted the connection. This determines the order.
    ASSERT_TRUE(peers.back()->Send(kGet));
    EXPECT_THAT(peers.back()->ReadReply(), EndsWith("a page\n"));
    ASSERT_TRUE(peers.back()->Send("GET /"));
  }
  ASSERT_TRUE(kept.Send(kGet));
  EXPECT_THAT(kept.ReadReply(), EndsWith("a page\n")) << "now the last of the four to wait";
  EXPECT_THAT(Fetch("GET", "/page"), EndsWith("a page\n")) << "the fifth connection";
  EXPECT_TRUE(peers[0]->Closed());
  ASSERT_TRUE(peers[1]->Send("page HTTP/1.1\r\nHost: test\r\n\r\n"));
  EXPECT_THAT(peers[1]->ReadReply(), EndsWith("a page\n"));
  ASSERT_TRUE(kept.Send(kGet));
  EXPECT_THAT(kept.ReadReply(), EndsWith("a page\n"));
}

TEST_F(HttpServerTest, SilentPeersAreClosed) {
  constexpr auto kSoon = std::chrono::milliseconds(50);
  constexpr auto kNever = std::chrono::hours(1);
  Start(Pages(), {.request = kSoon, .idle = kNever});
  HttpPeer silent(server_->address());
  EXPECT_TRUE(silent.Closed());
  HttpPeer half(server_->address());
  ASSERT_TRUE(half.Send("GET /pa"));
  EXPECT_TRUE(half.Closed());
  Start(Pages(), {.request = kNever, .idle = kSoon});
  HttpPeer idle(server_->address());
  ASSERT_TRUE(idle.Send(kGet));
  EXPECT_THAT(idle.ReadReply(), EndsWith("a page\n"));
  EXPECT_TRUE(idle.Closed());
}

TEST_F(HttpServerTest, SlowSendingDoesNotProlongARequest) {
  Start(Pages(), {.request = std::chrono::milliseconds(100)});
  HttpPeer peer(server_->address(), std::chrono::milliseconds(10));
  while (peer.Send("x") && !peer.Closed()) {
  }
  EXPECT_TRUE(peer.Closed()) << "without a reply";
}

TEST_F(HttpServerTest, PeersThatDoNotReadAreClosed) {
  Start(Pages(), {.reply = std::chrono::milliseconds(50)});
  HttpPeer peer(server_->address());
  ASSERT_TRUE(peer.Send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n"));
  while (peer.Send("x")) {  // until the server has closed the connection
  }
  EXPECT_LT(peer.ReadToEnd().size(), size_t{32} << 20);
}

// A page that blocks delays only requests for it. All requests that arrive while it is rendered
// share the next rendering.
TEST_F(HttpServerTest, BlockingPagesAreGeneratedOneAtATime) {
  auto gate = std::make_shared<Gate>();
  gate->Close();
  HttpRoutes routes = Pages();
  routes["/hangs"] = {.make =
                          [gate] {
                            gate->Pass();
                            return HttpPage{.body = "at last\n"};
                          },
                      .may_block = true};
  Start(std::move(routes));
  const std::string hangs = "GET /hangs HTTP/1.1\r\nHost: test\r\n\r\n";
  HttpPeer first(server_->address());
  ASSERT_TRUE(first.Send(hangs));
  gate->WaitUntilHeld();
  std::vector<std::unique_ptr<HttpPeer>> peers;
  for (int i = 0; i < 50; ++i) {
    peers.push_back(std::make_unique<HttpPeer>(server_->address()));
    ASSERT_TRUE(peers.back()->Send(kGet + hangs));
    EXPECT_THAT(peers.back()->ReadReply(), EndsWith("a page\n"));
  }
  EXPECT_THAT(Fetch("GET", "/page"), EndsWith("a page\n"));
  gate->Open();
  EXPECT_THAT(first.ReadReply(), EndsWith("at last\n"));
  for (const auto& peer : peers) EXPECT_THAT(peer->ReadReply(), EndsWith("at last\n"));
  EXPECT_EQ(gate->arrivals(), 2);
}

// Thread-local memory of linked libraries reduces the stack of every thread. OpenBLAS takes 60 KiB,
// so server threads with stacks of 100 KB could not even answer 404.
TEST_F(HttpServerTest, ThreadsHaveStacksOfTheSystemsSize) {
  Start(Pages());
  for (const char* path : {"/stack", "/slow_stack"}) {
    const std::string reply = Fetch("GET", path);
    EXPECT_GE(std::stoull(reply.substr(reply.find("\r\n\r\n") + 4)), size_t{1} << 20) << path;
  }
}

TEST_F(HttpServerTest, StopsWithConnectionsOpen) {
  Start(Pages());
  HttpPeer half(server_->address());
  ASSERT_TRUE(half.Send("GET /"));
  HttpPeer reading(server_->address());
  ASSERT_TRUE(reading.Send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n"));
  EXPECT_THAT(Fetch("GET", "/page"), EndsWith("a page\n"));
  server_.reset();
  EXPECT_TRUE(half.Closed());
}

TEST_F(HttpServerTest, TakenPortIsUnavailable) {
  Start(Pages());
  EXPECT_EQ(HttpServer::Start(server_->address(), Pages()).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(HttpServerTest, AddressesAreChecked) {
  EXPECT_EQ(HttpServer::Start("127.0.0.1:99999", Pages()).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(HttpServer::Start("no.such.host.invalid:0", Pages()).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace crout::http_server_test
