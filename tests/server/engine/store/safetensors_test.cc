// SPDX-License-Identifier: Apache-2.0

// Tests that hostile headers of safetensors files are refused.
#include "server/engine/store/safetensors.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/util/digest.h"
#include "tests/support/status_matchers.h"

namespace crout::safetensors_test {
namespace {

using ::crout::testing::FailsWith;

// Returns a header with these members after the metadata, and with a valid checksum.
std::string Header(const std::string& members, const std::string& texts = "") {
  const std::string zeros(16, '0');
  const std::string start = R"({"__metadata__":{"checksum":")";
  std::string text = start + zeros + "\"" + texts + "}" + members + "}";
  return text.replace(start.size(), 16, DigestText(XXH3_64bits(text.data(), text.size())));
}

std::string Member(const std::string& shape, const std::string& offsets,
                   const std::string& type = "U8") {
  return R"(,"a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}";
}

TEST(SafetensorsTest, RoundTrip) {
  TensorHeader header;
  header.metadata = {{"name", "a \"quoted\" µ"}, {"empty", ""}};
  header.tensors = {{"lu", TensorType::kF64, {2, 3}, 0, 48},
                    {"none", TensorType::kI64, {0}, 0, 0},
                    {"rest", TensorType::kU8, {5}, 0, 5}};
  ASSERT_OK_AND_ASSIGN(const std::string bytes, EncodeTensorHeader(header));
  EXPECT_EQ(bytes.size() % 8, 0u);
  const auto prefix = std::as_bytes(std::span(bytes)).first(kTensorPrefixBytes);
  ASSERT_OK_AND_ASSIGN(const size_t length, TensorHeaderLength(prefix, bytes.size() + 53));
  EXPECT_EQ(length, bytes.size() - 8);
  ASSERT_OK_AND_ASSIGN(const TensorHeader read, DecodeTensorHeader(bytes.substr(8), 53));
  EXPECT_EQ(read.metadata, header.metadata);
  ASSERT_EQ(read.tensors.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read.tensors[i].name, header.tensors[i].name);
    EXPECT_EQ(read.tensors[i].type, header.tensors[i].type);
    EXPECT_EQ(read.tensors[i].shape, header.tensors[i].shape);
    EXPECT_EQ(read.tensors[i].offset, header.tensors[i].offset);
    EXPECT_EQ(read.tensors[i].bytes, header.tensors[i].bytes);
  }
}

TEST(SafetensorsTest, RefusesTextsThatAreNotUtf8) {
  TensorHeader header;
  header.metadata = {{"name", "\xff"}};
  EXPECT_THAT(EncodeTensorHeader(header), FailsWith(absl::StatusCode::kInvalidArgument, "UTF-8"));
}

TEST(SafetensorsTest, RefusesHostileMembers) {
  EXPECT_OK(DecodeTensorHeader(Header(Member("[2,2]", "[0,4]")), 4));
  const std::vector<std::string> hostile = {
      Member("[2,2]", "[0,5]"),                    // not the bytes of the shape
      Member("[2,2]", "[1,5]"),                    // a gap
      Member("[2,2]", "[4,0]"),                    // backwards
      Member("[-2,-2]", "[0,4]"),                  // negative
      Member("[4294967296,4294967296]", "[0,0]"),  // the product is 2^64
      Member("[9223372036854775807,2]", "[0,4]"),  // overflows
      Member("[18446744073709551615]", "[0,4]"),   // above int64
      Member("[1,1,1,4]", "[0,4]"),                // rank
      Member("[4.0]", "[0,4]"),                    // not an integer
      Member("4", "[0,4]"),
      Member("[4]", "[0]"),
      Member("[4]", "[0,4]", "U9"),
      Member("[4]", "null"),
      R"(,"a":7)",
      R"(,"a":[])",
      R"(,"a":{})",
      Member("[4]", "[0,4]") +
          R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})",  // overlap
      "",
      ",",
      R"(,"b")"};
  for (const std::string& members : hostile) {
    EXPECT_THAT(DecodeTensorHeader(Header(members), 4), FailsWith(absl::StatusCode::kDataLoss, ""))
        << members;
  }
  std::string many;
  for (int i = 0; i < 100; ++i) {
    many += ",\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  EXPECT_THAT(DecodeTensorHeader(Header(many), 0), FailsWith(absl::StatusCode::kDataLoss, "many"));
  const std::string nested(100'000, '[');
  EXPECT_THAT(DecodeTensorHeader(Header(",\"a\":" + nested), 0),
              FailsWith(absl::StatusCode::kDataLoss, ""));
  EXPECT_THAT(DecodeTensorHeader(Header("", R"(,"x":7)"), 0),
              FailsWith(absl::StatusCode::kDataLoss, "string"));
}

TEST(SafetensorsTest, RefusesHostileLengths) {
  for (const uint64_t length : {uint64_t{0}, uint64_t{3}, uint64_t{101}, kMaxTensorHeaderBytes + 1,
                                uint64_t{1} << 63, ~uint64_t{0}}) {
    std::array<std::byte, 8> prefix;
    for (int i = 0; i < 8; ++i) prefix[i] = static_cast<std::byte>(length >> (8 * i));
    EXPECT_THAT(TensorHeaderLength(prefix, 108), FailsWith(absl::StatusCode::kDataLoss, "length"))
        << length;
  }
}

}  // namespace
}  // namespace crout::safetensors_test
