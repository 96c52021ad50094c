// SPDX-License-Identifier: Apache-2.0

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/observability/trace/trace_exporter.h"
#include "tests/support/timing/eventually.h"

namespace crout::trace_test {
namespace {

using crout::testing::Eventually;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr char kTraceId[] = "0af7651916cd43dd8448eb211c80319c";
constexpr char kParentId[] = "b7ad6b7169203331";

TEST(TraceContextTest, ParsesTraceparentHeaders) {
  const auto context = ParseTraceparent(absl::StrCat("00-", kTraceId, "-", kParentId, "-01"));
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace_id, kTraceId);
  EXPECT_EQ(context->parent_id, kParentId);
  EXPECT_TRUE(context->sampled);
  EXPECT_TRUE(ParseTraceparent(absl::StrCat("00-", kTraceId, "-", kParentId, "-ff"))->sampled);
  EXPECT_FALSE(ParseTraceparent(absl::StrCat("00-", kTraceId, "-", kParentId, "-02"))->sampled);
}

TEST(TraceContextTest, RejectsMalformedTraceparents) {
  const std::string good = absl::StrCat("00-", kTraceId, "-", kParentId, "-01");
  std::vector<std::string> bad = {"", "00", good + "0", "01" + good.substr(2)};
  for (const size_t at : {2U, 3U, 10U, 35U, 40U, 52U, 53U}) {
    for (const char wrong : {'g', 'A', '\n', '-', ' ', '\0'}) {
      std::string text = good;
      if (text[at] == wrong) continue;
      text[at] = wrong;
      bad.push_back(text);
    }
  }
  bad.push_back(absl::StrCat("00-", std::string(32, '0'), "-", kParentId, "-01"));
  bad.push_back(absl::StrCat("00-", kTraceId, "-", std::string(16, '0'), "-01"));
  for (const std::string& text : bad) EXPECT_FALSE(ParseTraceparent(text).has_value()) << text;
}

TracedCall SolveOf(const std::string& tenant) {
  TracedCall traced{{kTraceId, kParentId, true}, {}};
  EndedCall& call = traced.call;
  call.id = 7;
  call.method = Method::kSolve;
  call.tenant = tenant;
  call.n = 300;
  call.seconds = 2;
  call.ended = absl::FromUnixSeconds(1'800'000'002);
  call.phases[static_cast<size_t>(JobPhase::kQueue)] = 0.5;
  call.phases[static_cast<size_t>(JobPhase::kSolve)] = 1;
  call.phases[static_cast<size_t>(JobPhase::kSend)] = 0.75;  // phases overlap: their sum is 2.25 s
  return traced;
}

Json SpansOf(const Json& request) {
  return request.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans");
}

TEST(OtlpJsonTest, ACallIsASpanWithItsPhasesAsChildren) {
  int ids = 0;
  const TracedCall call = SolveOf("a");
  const Json request =
      Json::parse(OtlpJson({&call, 1}, [&] { return absl::StrCat("000000000000000", ++ids); }));
  const Json spans = SpansOf(request);
  ASSERT_EQ(spans.size(), 4);
  EXPECT_EQ(spans[0]["traceId"], kTraceId);
  EXPECT_EQ(spans[0]["spanId"], "0000000000000001");
  EXPECT_EQ(spans[0]["parentSpanId"], kParentId);
  EXPECT_EQ(spans[0]["name"], "crout.v1.FactorizationService/Solve");
  EXPECT_EQ(spans[0]["kind"], 2);
  EXPECT_EQ(spans[0]["startTimeUnixNano"], "1800000000000000000");
  EXPECT_EQ(spans[0]["endTimeUnixNano"], "1800000002000000000");
  EXPECT_EQ(spans[0]["status"]["code"], 0);
  EXPECT_THAT(spans[0]["attributes"].dump(),
              HasSubstr(R"({"key":"crout.n","value":{"intValue":"300"}})"));
  const char* const names[] = {"queue", "solve", "send"};
  const char* const ends[] = {"1800000000500000000", "1800000001500000000", "1800000002000000000"};
  for (size_t i = 0; i < 3; ++i) {
    const Json& phase = spans[i + 1];
    EXPECT_EQ(phase["name"], names[i]);
    EXPECT_EQ(phase["parentSpanId"], "0000000000000001");
    EXPECT_EQ(phase["startTimeUnixNano"], i == 0 ? "1800000000000000000" : ends[i - 1]);
    EXPECT_EQ(phase["endTimeUnixNano"], ends[i]);
  }
}

TEST(OtlpJsonTest, FailuresOfTheServerAreErrorsAndTextsStayTexts) {
  TracedCall call = SolveOf("\"\xff\n");
  const auto code_of = [&](absl::StatusCode code) {
    call.call.code = code;
    return SpansOf(Json::parse(OtlpJson({&call, 1}, [] { return "1"; })))[0]["status"]["code"];
  };
  EXPECT_EQ(code_of(absl::StatusCode::kInternal), 2);
  EXPECT_EQ(code_of(absl::StatusCode::kUnavailable), 2);
  EXPECT_EQ(code_of(absl::StatusCode::kNotFound), 0);
}

// Listens on 127.0.0.1 and answers each request with `reply`. Never answers if `reply` is empty.
class Receiver {
 public:
  explicit Receiver(std::string reply) : reply_(std::move(reply)) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    url_ = absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  ~Receiver() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    for (const int connection : connections_) close(connection);
    close(fd_);
  }
  Receiver(const Receiver&) = delete;  // It owns sockets.
  Receiver& operator=(const Receiver&) = delete;

  const std::string& url() const { return url_; }
  int requests() const { return requests_; }

 private:
  void Serve() {
    for (int connection; (connection = accept(fd_, nullptr, nullptr)) >= 0;) {
      connections_.push_back(connection);
      char buffer[4096];
      std::string request;
      // A request counts when its whole body has arrived.
      while (request.find("]}]}]}") == std::string::npos) {
        const ssize_t got = read(connection, buffer, sizeof buffer);
        if (got <= 0) break;
        request.append(buffer, static_cast<size_t>(got));
      }
      ++requests_;
      if (reply_.empty()) continue;
      EXPECT_EQ(write(connection, reply_.data(), reply_.size()),
                static_cast<ssize_t>(reply_.size()));
    }
  }

  const std::string reply_;
  int fd_;
  std::string url_;
  std::atomic<int> requests_ = 0;
  std::vector<int> connections_;
  std::thread thread_;
};

constexpr char kTaken[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

TraceExporterOptions Quick() {
  TraceExporterOptions options;
  options.delay = std::chrono::milliseconds(1);
  options.timeout = std::chrono::milliseconds(100);
  options.retry = options.max_retry = std::chrono::milliseconds(1);
  return options;
}

TEST(TraceExporterTest, SendsAddedCalls) {
  const Receiver receiver(kTaken);
  TraceExporterOptions options = Quick();
  options.timeout = std::chrono::minutes(1);
  const auto exporter = *TraceExporter::Create(receiver.url(), options);
  for (int i = 0; i < 5; ++i) exporter->Add(SolveOf("a"));
  EXPECT_TRUE(Eventually([&] { return exporter->exported() == 5; }));
  EXPECT_EQ(exporter->dropped(TraceDrop::kSendFailed), 0);
}

TEST(TraceExporterTest, SendsTheQueueAtShutdown) {
  const Receiver receiver(kTaken);
  TraceExporterOptions options = Quick();
  options.delay = std::chrono::hours(1);
  options.timeout = options.shutdown_timeout = std::chrono::minutes(1);
  (*TraceExporter::Create(receiver.url(), options))->Add(SolveOf("a"));
  EXPECT_EQ(receiver.requests(), 1);
}

// Expects that spans for the receiver at `url` are counted as failed sends, and not otherwise.
void ExpectDropped(const std::string& url) {
  const auto exporter = *TraceExporter::Create(url, Quick());
  for (uint64_t i = 1; i <= 3; ++i) {
    exporter->Add(SolveOf("a"));
    EXPECT_TRUE(Eventually([&] { return exporter->dropped(TraceDrop::kSendFailed) == i; }));
  }
  EXPECT_EQ(exporter->exported(), 0);
  EXPECT_EQ(exporter->dropped(TraceDrop::kQueueFull), 0);
}

TEST(TraceExporterTest, ASilentReceiver) {
  const Receiver receiver("");
  ExpectDropped(receiver.url());
}
TEST(TraceExporterTest, AReceiverThatIsNotThere) {
  std::string url;
  { url = Receiver("").url(); }
  ExpectDropped(url);
}
TEST(TraceExporterTest, AReceiverThatRefuses) {
  const Receiver receiver("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
  ExpectDropped(receiver.url());
}
TEST(TraceExporterTest, AReceiverThatNeverFinishes) {
  const Receiver receiver("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{");
  ExpectDropped(receiver.url());
}
TEST(TraceExporterTest, AReceiverWithTooLongAReply) {
  const Receiver receiver("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
  ExpectDropped(receiver.url());
}
TEST(TraceExporterTest, AReceiverOfAnotherProtocol) {
  const Receiver receiver("SSH-2.0-OpenSSH_9.2\r\n");
  ExpectDropped(receiver.url());
}

TEST(TraceExporterTest, AStuckReceiverDelaysNeitherCallsNorTheExit) {
  const Receiver silent("");
  TraceExporterOptions options = Quick();
  options.capacity = 10;
  options.batch = 1;
  options.timeout = std::chrono::hours(1);
  options.shutdown_timeout = std::chrono::milliseconds(10);
  auto exporter = *TraceExporter::Create(silent.url(), options);
  exporter->Add(SolveOf("a"));
  ASSERT_TRUE(Eventually([&] { return silent.requests() == 1; }));  // now waits for the reply
  for (int i = 0; i < 15; ++i) exporter->Add(SolveOf("a"));
  EXPECT_EQ(exporter->dropped(TraceDrop::kQueueFull), 5);
  exporter.reset();  // must not wait an hour for the reply
}

TEST(TraceExporterTest, AnEndpointIsAPlainHttpUrl) {
  for (const char* bad : {"", "localhost:4318", "https://localhost:4318", "http://localhost",
                          "http://localhost:0", "http://:4318", "http://localhost:4318/a b",
                          "http://localhost:4318/a\r\nX: y", "http://localhost:99999"}) {
    EXPECT_EQ(TraceExporter::Create(bad).status().code(), absl::StatusCode::kInvalidArgument)
        << bad;
  }
  EXPECT_EQ(ParseHttpUrl("http://[::1]:4318/otlp")->address.host, "::1");
  EXPECT_EQ(ParseHttpUrl("http://[::1]:4318/otlp")->path, "/otlp");
}

}  // namespace
}  // namespace crout::trace_test
