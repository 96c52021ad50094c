// SPDX-License-Identifier: Apache-2.0

#include "server/net/compression.h"

#include <zlib.h>

#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/util/strings.h"

namespace crout {

bool AcceptsGzip(std::string_view accept_encoding) {
  for (const absl::string_view coding : absl::StrSplit(ToAbsl(accept_encoding), ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(coding, ';');
    if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts[0]), "gzip")) continue;
    absl::string_view weight =
        parts.size() < 2 ? absl::string_view() : absl::StripAsciiWhitespace(parts[1]);
    double q = 1;
    return !absl::ConsumePrefix(&weight, "q=") || (absl::SimpleAtod(weight, &q) && q > 0);
  }
  return false;
}

std::string Gzip(std::string_view text) {
  constexpr int kGzipWindow = 15 + 16;  // a window of 2^15 bytes; 16: gzip header
  constexpr int kMemory = 8;
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return "";
  }
  const absl::Cleanup end = [&] { deflateEnd(&stream); };
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(result == Z_STREAM_END ? stream.total_out : 0);
  return packed;
}

}  // namespace crout
