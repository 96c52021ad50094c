// SPDX-License-Identifier: Apache-2.0

#include "server/s3/settings.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/status_matchers.h"

namespace crout {
namespace {

using testing::FailsWith;
using testing::IsOk;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kPrecondition = absl::StatusCode::kFailedPrecondition;

S3Settings Settings(const std::string& endpoint, const std::string& bucket = "factors") {
  return {.endpoint = endpoint,
          .region = "us-east-1",
          .bucket = bucket,
          .credentials = {"access", "secret", ""}};
}

TEST(S3SettingsTest, AcceptsHttpsAndLoopback) {
  for (const char* endpoint : {"https://s3.example.com", "https://10.0.0.1:9000",
                               "http://127.0.0.1:9000", "http://[::1]:9000", "http://localhost"}) {
    EXPECT_THAT(CheckS3Settings(Settings(endpoint)), IsOk()) << endpoint;
  }
}

TEST(S3SettingsTest, RefusesEndpoints) {
  for (const char* endpoint :
       {"", "s3.example.com", "ftp://host", "https://host/path", "https://host/",
        "https://user@host", "https://user:p@host", "https://host?q", "https://host#f",
        "https://host:99999", "https://ho st"}) {
    EXPECT_THAT(CheckS3Settings(Settings(endpoint)), FailsWith(kInvalid, "endpoint")) << endpoint;
  }
}

TEST(S3SettingsTest, RefusesPlainHttpToOtherMachines) {
  for (const char* endpoint : {"http://10.0.0.1", "http://127.evil.example"}) {
    S3Settings settings = Settings(endpoint);
    EXPECT_THAT(CheckS3Settings(settings), FailsWith(kPrecondition, "Use https://"));
    settings.allow_plain_http = true;
    EXPECT_THAT(CheckS3Settings(settings), IsOk());
  }
}

TEST(S3SettingsTest, RefusesBucketsRegionsAndKeys) {
  for (const char* bucket : {"", "ab", "Upper", "a/b", "-ab", "a..b", "a b"})
    EXPECT_THAT(CheckS3Settings(Settings("https://h", bucket)), FailsWith(kInvalid, "bucket"));
  S3Settings settings = Settings("https://h", "a.bucket");
  EXPECT_THAT(CheckS3Settings(settings), FailsWith(kInvalid, "path-style"));
  settings.path_style = true;
  EXPECT_THAT(CheckS3Settings(settings), IsOk());
  settings.region = "a:b";
  EXPECT_THAT(CheckS3Settings(settings), FailsWith(kInvalid, "region"));
  settings.region = "eu";
  settings.credentials.session_token = "a\r\nHost: b";
  EXPECT_THAT(CheckS3Settings(settings), FailsWith(kInvalid, "printable"));
}

TEST(S3SettingsTest, ReadsAProfile) {
  constexpr char kFile[] =
      "# comment\n[other]\naws_access_key_id = a\n\n[ mine ]\r\naws_access_key_id=b\r\n"
      "aws_secret_access_key = c=d\naws_session_token = e\nregion = f\n[half]\n"
      "aws_access_key_id = g\n";
  ASSERT_OK_AND_ASSIGN(const S3Credentials keys, ParseS3Credentials(kFile, "mine"));
  EXPECT_EQ(keys.access_key, "b");
  EXPECT_EQ(keys.secret_key, "c=d");
  EXPECT_EQ(keys.session_token, "e");
  EXPECT_THAT(ParseS3Credentials(kFile, "none"), FailsWith(kPrecondition, "AWS_PROFILE"));
  EXPECT_THAT(ParseS3Credentials(kFile, "half"), FailsWith(kPrecondition, "lacks a key"));
  EXPECT_THAT(ParseS3Credentials("[", ""), FailsWith(kPrecondition, "AWS_PROFILE"));
}

TEST(S3SettingsTest, FindsCredentialsInTheEnvironmentAndInAFile) {
  const std::string path = ::testing::TempDir() + "s3_credentials";
  std::ofstream(path) << "[default]\naws_access_key_id=a\naws_secret_access_key=b\n";
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  for (const char* name :
       {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"}) {
    ASSERT_EQ(unsetenv(name), 0);
  }
  ASSERT_EQ(setenv("AWS_SHARED_CREDENTIALS_FILE", path.c_str(), 1), 0);
  EXPECT_EQ(FindS3Credentials().value().secret_key, "b");
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_THAT(FindS3Credentials(), FailsWith(kPrecondition, "chmod 600"));
  ASSERT_EQ(setenv("AWS_ACCESS_KEY_ID", "c", 1), 0);
  EXPECT_THAT(FindS3Credentials(), FailsWith(kPrecondition, "Set both"));
  ASSERT_EQ(setenv("AWS_SECRET_ACCESS_KEY", "d", 1), 0);
  EXPECT_EQ(FindS3Credentials().value().secret_key, "d");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace crout
