// SPDX-License-Identifier: Apache-2.0

// Tests S3Client against servers that fail, stall or send wrong bytes. tests/e2e/s3 tests it
// against an S3 server.
#include "server/s3/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "absl/strings/str_cat.h"
#include "tests/support/peers/scripted_http_server.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/eventually.h"
#include "tests/support/timing/failpoints.h"

namespace crout {
namespace {

using testing::Failpoints;
using testing::FailsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ScriptedHttpServer;
using ::testing::StartsWith;

constexpr absl::StatusCode kUnavailable = absl::StatusCode::kUnavailable;

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// The bytes in two buffers, with an empty one between them.
std::vector<std::span<const std::byte>> PiecesOf(const std::string& text) {
  const auto bytes = BytesOf(text);
  return {bytes.first(text.size() / 3), {}, bytes.subspan(text.size() / 3)};
}

std::string Reply(int status, const std::string& headers, const std::string& body) {
  return absl::StrCat("HTTP/1.1 ", status, " X\r\nConnection: close\r\n", headers,
                      "Content-Length: ", body.size(), "\r\n\r\n", body);
}

std::string Refusal(int status, const std::string& code) {
  return Reply(status, "", absl::StrCat("<Error><Code>", code, "</Code></Error>"));
}

// The header with the digest of an object of one block.
std::string DigestHeader(const std::string& text) {
  const Sha256 block = Sha256Of(BytesOf(text)).value();
  return absl::StrCat(kS3DigestHeader, ": ", HexOf(Sha256Of(block).value()), "\r\n");
}

std::string Object(const std::string& text) {
  return Reply(200, absl::StrCat("ETag: \"t\"\r\n", DigestHeader(text)), text);
}

S3Settings SettingsFor(const std::string& endpoint) {
  return {.endpoint = endpoint,
          .region = "us-east-1",
          .bucket = "factors",
          .path_style = true,
          .credentials = {"an-access-key", "a-secret-key", "a-token"}};
}

class S3ClientTest : public ::testing::Test {
 protected:
  S3ClientTest() {
    client_ =
        S3Client::Create(SettingsFor(absl::StrCat("http://127.0.0.1:", server_.port()))).value();
  }

  // Reads an object of at most eight bytes.
  absl::StatusOr<std::string> Get() {
    std::string text(8, ' ');
    const auto info = client_->Get("f/1", std::as_writable_bytes(std::span(text)), limits_);
    if (!info.ok()) return info.status();
    return text.substr(0, info->bytes);
  }
  absl::StatusOr<std::string> Put(const S3Condition& condition = {}) {
    return client_->Put("f/1", PiecesOf("12345678"), condition, limits_);
  }

  ScriptedHttpServer server_;
  std::unique_ptr<S3Client> client_;
  S3CallLimits limits_{.duration = absl::ToChronoMilliseconds(10 * testing::kTestTimeout)};
};

TEST_F(S3ClientTest, ReadsAnObject) {
  server_.Add(Object("12345678"));
  server_.Add(Object(""));
  EXPECT_EQ(Get().value(), "12345678");
  EXPECT_EQ(Get().value(), "");
  const std::string request = server_.AwaitRequests(2)[0];
  EXPECT_THAT(request, StartsWith("GET /factors/f/1 HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("x-amz-security-token: a-token\r\n"));
  EXPECT_THAT(request, HasSubstr("/us-east-1/s3/aws4_request"));
  EXPECT_THAT(request, Not(HasSubstr("a-secret-key")));
}

TEST_F(S3ClientTest, SendsTheBucketInTheHost) {
  S3Settings settings = SettingsFor(absl::StrCat("http://localhost:", server_.port()));
  settings.path_style = false;
  server_.Add(Reply(204, "", ""));
  EXPECT_OK(S3Client::Create(settings).value()->Remove("f/1", limits_));
  const std::string request = server_.AwaitRequests(1)[0];
  EXPECT_THAT(request, StartsWith("DELETE /f/1 HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("Host: factors.localhost:"));
}

TEST_F(S3ClientTest, FindsFlippedBits) {
  server_.Add(Reply(200, absl::StrCat("ETag: \"t\"\r\n", DigestHeader("12345678")), "12345679"));
  EXPECT_THAT(Get(), FailsWith(absl::StatusCode::kDataLoss, "differs from its digest"));
  server_.Add(Reply(200, "ETag: \"t\"\r\n", "12345678"));
  EXPECT_THAT(Get(), FailsWith(absl::StatusCode::kDataLoss, "has no digest"));
  Failpoints failpoints;
  failpoints.FlipBit("s3.get", 9);
  server_.Add(Object("12345678"));
  EXPECT_THAT(Get(), FailsWith(absl::StatusCode::kDataLoss, "differs from its digest"));
}

TEST_F(S3ClientTest, RefusesLongObjectsAndHeaders) {
  server_.Add(Object("123456789"));
  EXPECT_THAT(Get(), FailsWith(absl::StatusCode::kResourceExhausted, "more than the 8"));
  server_.Add(Reply(200, absl::StrCat("X: ", std::string(70'000, 'x'), "\r\n"), "1"));
  EXPECT_THAT(Get(), FailsWith(absl::StatusCode::kResourceExhausted, "64 KiB"));
}

TEST_F(S3ClientTest, RepeatsReadsThatEndEarly) {
  const std::string reply = Object("12345678");
  server_.Add(reply.substr(0, reply.size() - 3));
  server_.Add("");
  server_.Add(Refusal(503, "SlowDown"));
  server_.Add(reply);
  EXPECT_EQ(Get().value(), "12345678");
}

TEST_F(S3ClientTest, GivesUpAfterFourAttempts) {
  for (int i = 0; i < 4; ++i) server_.Add(Refusal(500, "InternalError"));
  EXPECT_THAT(Get(), FailsWith(kUnavailable, "HTTP 500, InternalError"));
  EXPECT_EQ(server_.AwaitRequests(4).size(), 4);
}

TEST_F(S3ClientTest, RepeatsUnconditionalWritesOnly) {
  server_.Add(Refusal(503, "SlowDown"));
  server_.Add(Reply(200, "ETag: \"new\"\r\n", ""));
  EXPECT_EQ(Put().value(), "\"new\"");
  server_.Add(Refusal(503, "SlowDown"));
  EXPECT_THAT(Put({.absent = true}), FailsWith(kUnavailable, "SlowDown"));
  server_.Add("");
  EXPECT_THAT(Put({.etag = "\"new\""}), FailsWith(kUnavailable, "cannot be reached"));
  const auto requests = server_.AwaitRequests(4);
  EXPECT_EQ(requests.size(), 4);
  EXPECT_THAT(requests[1], StartsWith("PUT /factors/f/1 HTTP/1.1\r\n"));
  EXPECT_THAT(requests[1], ::testing::EndsWith("\r\n\r\n12345678"));
  EXPECT_THAT(requests[2], HasSubstr("If-None-Match: *\r\n"));
  EXPECT_THAT(requests[3], HasSubstr("If-Match: \"new\"\r\n"));
}

TEST_F(S3ClientTest, MapsRefusalsToStatuses) {
  using enum absl::StatusCode;
  const std::vector<std::pair<std::string, absl::StatusCode>> cases = {
      {Refusal(404, "NoSuchKey"), kNotFound},
      {Refusal(404, "NoSuchBucket"), kFailedPrecondition},
      {Refusal(403, "SignatureDoesNotMatch"), kPermissionDenied},
      {Refusal(403, "QuotaExceeded"), kResourceExhausted},
      {Refusal(400, "ExpiredToken"), kPermissionDenied},
      {Refusal(301, "PermanentRedirect"), kFailedPrecondition},
      {Refusal(412, "PreconditionFailed"), kAborted},
      {Refusal(501, "NotImplemented"), kUnimplemented},
      {Refusal(409, "ConditionalRequestConflict"), absl::StatusCode::kUnavailable},
      {Reply(403, "", "<html>no</p>"), kPermissionDenied}};
  for (const auto& [reply, code] : cases) {
    server_.Add(reply);
    const absl::Status status = Put({.absent = true}).status();
    EXPECT_THAT(status, FailsWith(code, "the object store refused to write an object: HTTP"));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("f/1")));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("127.0.0.1")));
  }
}

TEST_F(S3ClientTest, EndsWhenTheServerIsSilent) {
  limits_.duration = std::chrono::milliseconds(50);
  EXPECT_THAT(Get(), FailsWith(kUnavailable, "within 50 ms"));
  server_.Add(Object("12345678").substr(0, 40), /*complete=*/false);
  EXPECT_THAT(Get(), FailsWith(kUnavailable, "within 50 ms"));
}

TEST_F(S3ClientTest, EndsWhenItIsStopped) {
  std::stop_source stop;
  limits_.stop = stop.get_token();
  auto got = std::async(std::launch::async, [&] { return Get(); });
  server_.AwaitRequests(1);
  stop.request_stop();
  EXPECT_THAT(got.get(), FailsWith(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_THAT(Put(), FailsWith(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_EQ(server_.AwaitRequests(1).size(), 1);
}

TEST_F(S3ClientTest, InjectsFailures) {
  Failpoints failpoints;
  failpoints.Fail("s3.send", absl::UnavailableError("injected"), 1);
  server_.Add(Object("1"));
  EXPECT_EQ(Get().value(), "1");
  EXPECT_EQ(failpoints.reached("s3.send"), 2);
}

TEST_F(S3ClientTest, ReportsAServerThatIsGone) {
  const auto gone = S3Client::Create(SettingsFor("http://127.0.0.1:1"));
  EXPECT_THAT((*gone)->Head("f/1", {.duration = std::chrono::milliseconds(100)}),
              FailsWith(kUnavailable, "cannot be reached"));
}

TEST_F(S3ClientTest, ReadsARange) {
  std::string text(4, ' ');
  const auto to = std::as_writable_bytes(std::span(text));
  server_.Add(Reply(206, "ETag: \"t\"\r\nContent-Range: bytes 2-5/8\r\n", "3456"));
  EXPECT_OK(client_->GetRange("f/1", "\"t\"", 2, to, limits_));
  EXPECT_EQ(text, "3456");
  EXPECT_THAT(server_.AwaitRequests(1)[0], HasSubstr("Range: bytes=2-5\r\n"));
  server_.Add(Reply(206, "Content-Range: bytes 6-7/8\r\n", "78"));
  EXPECT_THAT(client_->GetRange("f/1", "\"t\"", 6, to, limits_),
              FailsWith(absl::StatusCode::kOutOfRange, "ends at byte 8"));
  server_.Add(Reply(200, "", "1234"));
  EXPECT_THAT(client_->GetRange("f/1", "\"t\"", 2, to, limits_),
              FailsWith(kUnavailable, "other bytes"));
  EXPECT_THAT(client_->GetRange("f/1", "a\r\nb", 2, to, limits_),
              FailsWith(absl::StatusCode::kInvalidArgument, "tag"));
}

TEST_F(S3ClientTest, RefusesADescriptionWithoutALength) {
  server_.Add("HTTP/1.1 200 X\r\nConnection: close\r\nETag: \"t\"\r\n\r\n");
  EXPECT_THAT(client_->Head("f/1", limits_), FailsWith(kUnavailable, "no length"));
}

TEST_F(S3ClientTest, RefusesKeys) {
  for (const char* key : {"", "/a", "a/", "a//b", "a/../b", ".", "a b", "a?b", "a\nb"}) {
    EXPECT_THAT(client_->Remove(key, limits_),
                FailsWith(absl::StatusCode::kInvalidArgument, "key"));
  }
  EXPECT_THAT(client_->Head(std::string(513, 'a'), limits_),
              FailsWith(absl::StatusCode::kInvalidArgument, "512"));
}

TEST_F(S3ClientTest, RemovesAnUploadThatFails) {
  constexpr char kBegun[] =
      "<InitiateMultipartUploadResult><UploadId>a+b</UploadId></InitiateMultipartUploadResult>";
  const std::string bytes(kS3PartBytes + 1, 'x');
  server_.Add(Reply(200, "", kBegun));
  server_.Add(Reply(200, "ETag: \"1\"\r\n", ""));
  server_.Add(Refusal(403, "AccessDenied"));
  server_.Add(Reply(204, "", ""));
  EXPECT_THAT(client_->Put("f/1", PiecesOf(bytes), {}, limits_),
              FailsWith(absl::StatusCode::kPermissionDenied, "write a part"));
  const auto requests = server_.AwaitRequests(4);
  EXPECT_THAT(requests[1], StartsWith("PUT /factors/f/1?partNumber=1&uploadId=a%2Bb HTTP"));
  EXPECT_THAT(requests[3], StartsWith("DELETE /factors/f/1?uploadId=a%2Bb HTTP"));
}

TEST_F(S3ClientTest, FindsAnErrorAfterTheStatusOfAnUpload) {
  constexpr char kBegun[] =
      "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>";
  const std::string bytes(kS3PartBytes + 1, 'x');
  server_.Add(Reply(200, "", kBegun));
  server_.Add(Reply(200, "ETag: \"1\"\r\n", ""));
  server_.Add(Reply(200, "ETag: \"2\"\r\n", ""));
  server_.Add(Refusal(200, "PreconditionFailed"));
  server_.Add(Reply(204, "", ""));
  EXPECT_THAT(client_->Put("f/1", PiecesOf(bytes), {.absent = true}, limits_),
              FailsWith(absl::StatusCode::kAborted, "complete an upload"));
  EXPECT_THAT(server_.AwaitRequests(5)[3], HasSubstr("<ETag>\"2\"</ETag></Part></Complete"));
}

}  // namespace
}  // namespace crout
