// SPDX-License-Identifier: Apache-2.0

// Tests S3Client against the S3 server that s3_server.py starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/s3/client.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/eventually.h"

namespace crout {
namespace {

using testing::FailsWith;

// The bytes in two buffers.
std::vector<std::span<const std::byte>> PiecesOf(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.first(text.size() / 3), bytes.subspan(text.size() / 3)};
}

S3Settings ServerSettings() {
  return {.endpoint = std::getenv("CROUT_S3_ENDPOINT"),
          .region = "us-east-1",
          .bucket = "factors",
          .path_style = true,
          .credentials = FindS3Credentials().value()};
}

class S3ServerTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Put(const std::string& key, const std::string& text,
                                  const S3Condition& condition = {}) {
    return client_->Put(key, PiecesOf(text), condition, limits_);
  }
  absl::StatusOr<std::string> Get(const std::string& key, size_t space = 100) {
    std::string text(space, ' ');
    const auto info = client_->Get(key, std::as_writable_bytes(std::span(text)), limits_);
    if (!info.ok()) return info.status();
    return text.substr(0, info->bytes);
  }

  const std::unique_ptr<S3Client> client_ = S3Client::Create(ServerSettings()).value();
  const S3CallLimits limits_{.duration = absl::ToChronoMilliseconds(10 * testing::kTestTimeout)};
};

TEST_F(S3ServerTest, WritesReadsAndRemoves) {
  ASSERT_OK_AND_ASSIGN(const std::string tag, Put("a/1", "contents"));
  EXPECT_EQ(Get("a/1").value(), "contents");
  ASSERT_OK_AND_ASSIGN(const S3ObjectInfo info, client_->Head("a/1", limits_));
  EXPECT_EQ(info.bytes, 8);
  EXPECT_EQ(info.etag, tag);
  EXPECT_OK(client_->Remove("a/1", limits_));
  EXPECT_OK(client_->Remove("a/1", limits_));
  EXPECT_THAT(Get("a/1"), FailsWith(absl::StatusCode::kNotFound, "NoSuchKey"));
  EXPECT_THAT(client_->Head("a/1", limits_), FailsWith(absl::StatusCode::kNotFound, "404"));
}

TEST_F(S3ServerTest, WritesAnEmptyObject) {
  ASSERT_OK(Put("empty", ""));
  EXPECT_EQ(Get("empty", 0).value(), "");
}

TEST_F(S3ServerTest, WritesOnce) {
  ASSERT_OK_AND_ASSIGN(const std::string first, Put("once", "first", {.absent = true}));
  EXPECT_THAT(Put("once", "second", {.absent = true}),
              FailsWith(absl::StatusCode::kAborted, "PreconditionFailed"));
  ASSERT_OK(Put("once", "third", {.etag = first}));
  EXPECT_THAT(Put("once", "fourth", {.etag = first}),
              FailsWith(absl::StatusCode::kAborted, "PreconditionFailed"));
  EXPECT_EQ(Get("once").value(), "third");
}

TEST_F(S3ServerTest, ReadsARangeOfOneVersion) {
  ASSERT_OK_AND_ASSIGN(const std::string tag, Put("range", "0123456789"));
  std::string text(4, ' ');
  const auto to = std::as_writable_bytes(std::span(text));
  ASSERT_OK(client_->GetRange("range", tag, 3, to, limits_));
  EXPECT_EQ(text, "3456");
  EXPECT_THAT(client_->GetRange("range", tag, 8, to, limits_),
              FailsWith(absl::StatusCode::kOutOfRange, "ends at byte 10"));
  EXPECT_THAT(client_->GetRange("range", tag, 10, to, limits_),
              FailsWith(absl::StatusCode::kOutOfRange, "416"));
  ASSERT_OK(Put("range", "9876543210"));
  EXPECT_THAT(client_->GetRange("range", tag, 3, to, limits_),
              FailsWith(absl::StatusCode::kAborted, "read a part"));
}

TEST_F(S3ServerTest, ListsPages) {
  ASSERT_OK(Put("list2", "x"));
  std::set<std::string> keys;
  std::string continuation;
  int pages = 0;
  do {
    ASSERT_OK_AND_ASSIGN(S3Page page, client_->List("list/", continuation, limits_));
    for (const S3Entry& entry : page.entries) keys.insert(entry.key);
    continuation = page.continuation;
    ++pages;
  } while (!continuation.empty());
  EXPECT_EQ(pages, 2);
  EXPECT_EQ(keys.size(), 1005);
  EXPECT_FALSE(keys.contains("list2"));
}

TEST_F(S3ServerTest, WritesPartsOnce) {
  std::string bytes(kS3PartBytes + 1, 'x');
  for (size_t i = 0; i < bytes.size(); i += 4096) bytes[i] = static_cast<char>(i >> 12);
  ASSERT_OK_AND_ASSIGN(const std::string tag, Put("large", bytes, {.absent = true}));
  EXPECT_EQ(client_->Head("large", limits_)->etag, tag);
  EXPECT_TRUE(Get("large", bytes.size()).value() == bytes);
  EXPECT_THAT(Put("large", bytes, {.absent = true}),
              FailsWith(absl::StatusCode::kAborted, "complete an upload"));
}

TEST_F(S3ServerTest, IsRefusedWithAWrongSecret) {
  S3Settings settings = ServerSettings();
  settings.credentials.secret_key += "x";
  const auto client = S3Client::Create(settings).value();
  EXPECT_THAT(client->Put("a", {}, {}, limits_),
              FailsWith(absl::StatusCode::kPermissionDenied, "SignatureDoesNotMatch"));
  EXPECT_THAT(client->Head("a", limits_), FailsWith(absl::StatusCode::kPermissionDenied, "403"));
}

TEST_F(S3ServerTest, IsRefusedWithoutABucket) {
  S3Settings settings = ServerSettings();
  settings.bucket = "no-such-bucket";
  EXPECT_THAT(S3Client::Create(settings).value()->Put("a", {}, {}, limits_),
              FailsWith(absl::StatusCode::kFailedPrecondition, "Create the bucket"));
}

TEST_F(S3ServerTest, ChecksTheCertificate) {
  const std::string port = std::getenv("CROUT_S3_TLS_PORT");
  S3Settings settings = ServerSettings();
  const auto put = [&](const std::string& host) {
    settings.endpoint = absl::StrCat("https://", host, ":", port);
    return S3Client::Create(settings).value()->Put("tls", PiecesOf("contents"), {}, limits_);
  };
  constexpr absl::StatusCode kPrecondition = absl::StatusCode::kFailedPrecondition;
  EXPECT_THAT(put("localhost"), FailsWith(kPrecondition, "certificate"));
  settings.ca_file = "/no/such/file";
  EXPECT_THAT(put("localhost"), FailsWith(kPrecondition, "certificate"));
  settings.ca_file = std::getenv("CROUT_S3_CERTIFICATE");
  EXPECT_OK(put("localhost"));
  EXPECT_THAT(put("127.0.0.1"), FailsWith(kPrecondition, "certificate"));
  EXPECT_EQ(Get("tls").value(), "contents");
}

}  // namespace
}  // namespace crout
