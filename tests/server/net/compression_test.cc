// SPDX-License-Identifier: Apache-2.0

#include "server/net/compression.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace crout::compression_test {
namespace {

// Decompresses gzip data with zlib. Returns at most `limit` bytes.
std::string Unpacked(const std::string& packed, size_t limit) {
  std::string text(limit, '\0');
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

TEST(CompressionTest, GzipRoundTrips) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += "crout_requests_total " + std::to_string(i * i) + "\n";
  const std::string packed = Gzip(text);
  EXPECT_LT(packed.size(), text.size() / 2);
  EXPECT_EQ(Unpacked(packed, text.size() + 1), text);
  EXPECT_EQ(Unpacked(Gzip(""), 1), "");
  EXPECT_EQ(Unpacked(Gzip("x"), 2), "x") << "a text that packing makes longer";
}

TEST(CompressionTest, ParsesAcceptEncoding) {
  for (const char* yes : {"gzip", "GZIP", "deflate, gzip", "gzip;q=0.5", "br;q=1.0, gzip ; q=0.1",
                          "gzip;q=1, deflate;q=0"}) {
    EXPECT_TRUE(AcceptsGzip(yes)) << yes;
  }
  for (const char* no : {"", "identity", "gzip;q=0", "gzip; q=0.000", "gzipped", "deflate;q=gzip",
                         "gzip;q=no", ",;,"}) {
    EXPECT_FALSE(AcceptsGzip(no)) << no;
  }
}

}  // namespace
}  // namespace crout::compression_test
