// SPDX-License-Identifier: Apache-2.0

#include "server/s3/xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace crout {
namespace {

using testing::FailsWith;

constexpr absl::StatusCode kBadReply = absl::StatusCode::kUnavailable;

std::string Contents(const std::string& key) {
  return absl::StrCat("<Contents><Key>", key,
                      "</Key><ETag>&quot;e&quot;</ETag><Size>7</Size><Owner><ID>o</ID></Owner>"
                      "</Contents>");
}

std::string List(const std::string& inside, const char* end = "<IsTruncated>false</IsTruncated>") {
  return absl::StrCat("<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"a\">", end, inside,
                      "</ListBucketResult>\n");
}

absl::Status Read(const std::string& document) {
  return ReadXml(document, [](const auto&, const std::string&) { return absl::OkStatus(); });
}

TEST(S3XmlTest, ReadsAPage) {
  ASSERT_OK_AND_ASSIGN(
      const S3Page page,
      ParseS3Page(List(Contents("f/1") + Contents("f/a&#x20;b") + Contents("f/2"),
                       "<IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;"
                       "</NextContinuationToken>"),
                  "f/"));
  ASSERT_EQ(page.entries.size(), 2);  // "f/a b" is not a key of S3Client
  EXPECT_EQ(page.entries[1].key, "f/2");
  EXPECT_EQ(page.entries[1].bytes, 7);
  EXPECT_EQ(page.entries[1].etag, "\"e\"");
  EXPECT_EQ(page.continuation, "t&");
}

TEST(S3XmlTest, RefusesInvalidPages) {
  const auto refused = [](const std::string& document, const char* why) {
    EXPECT_THAT(ParseS3Page(document, "f/"), FailsWith(kBadReply, why)) << document;
  };
  refused(List("", ""), "no IsTruncated");
  refused(List("", "<IsTruncated>yes</IsTruncated>"), "invalid IsTruncated");
  refused(List("", "<IsTruncated>true</IsTruncated>"), "invalid end");
  refused(List(Contents("g/1")), "without the prefix");
  refused(List("<Contents><Key>f/1</Key><Size>-1</Size></Contents>"), "invalid size");
  refused(List("<Contents><Key>f/1</Key></Contents>"), "without a size");
  refused("<Error/>", "another root");
  std::string many;
  for (size_t i = 0; i <= kS3PageEntries; ++i) many += Contents("f/1");
  refused(List(many), "more than 1000");
}

TEST(S3XmlTest, RefusesMalformedDocuments) {
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"", "no element"},
      {"text", "no element"},
      {"<?xml version=\"1.0\"", "declaration without an end"},
      {"<a>", "without an end"},
      {"<a></b>", "end of another"},
      {"<a></a><b/>", "more than one"},
      {"<a b></a>", "invalid tag"},
      {"<a b=\"<\"/>", "invalid tag"},
      {"<a b=\"1\"c=\"2\"/>", "invalid tag"},
      {"<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "other than elements"},
      {"<a><![CDATA[b]]></a>", "other than elements"},
      {"<a><!-- b --></a>", "other than elements"},
      {"<a>&b;</a>", "invalid reference"},
      {"<a>&#0;</a>", "invalid reference"},
      {"<a>&#xd800;</a>", "invalid reference"},
      {"<a>&#99999999;</a>", "invalid reference"},
      {"<a>&amp</a>", "invalid reference"},
      {std::string("<a>\0</a>", 8), "control character"},
      {"<a><a><a><a><a><a><a><a><a>", "more than 8"},
      {absl::StrCat("<a>", std::string(8193, 'x'), "</a>"), "8 KiB"},
      {absl::StrCat("<", std::string(65, 'x'), "/>"), "other than elements"}};
  for (const auto& [document, why] : cases)
    EXPECT_THAT(Read(document), FailsWith(kBadReply, why)) << document;
}

TEST(S3XmlTest, DecodesReferences) {
  EXPECT_EQ(ParseS3Text("<a><b>&lt;&#65;&#xe9;&#x20ac;&#x1F600;</b></a>", "a", "b").value(),
            "<A\u00e9\u20ac\U0001F600");
  EXPECT_THAT(ParseS3Text("<a><b/></a>", "a", "b"), FailsWith(kBadReply, "without b"));
}

TEST(S3XmlTest, ReadsErrors) {
  EXPECT_EQ(ParseS3Error(" <Error><Code>NoSuchKey</Code><Key>k</Key></Error>"), "NoSuchKey");
  EXPECT_EQ(ParseS3Error("<Error><Code>a b\n</Code></Error>"), "");
  EXPECT_EQ(ParseS3Error("<html><body>502</body></html>"), "");
  EXPECT_EQ(ParseS3Error(""), "");
}

}  // namespace
}  // namespace crout
