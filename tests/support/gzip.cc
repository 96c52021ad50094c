// SPDX-License-Identifier: Apache-2.0

#include "tests/support/gzip.h"

#include <zlib.h>

#include <cstdio>
#include <cstdlib>

namespace crout::testing {

std::string Gzip(std::string_view text, int level) {
  constexpr int kGzipWindow = 15 + 16;
  constexpr int kMemory = 8;
  z_stream stream = {};
  deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) {
    std::fputs("a text that zlib does not pack\n", stderr);
    std::abort();
  }
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace crout::testing
