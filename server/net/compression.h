// SPDX-License-Identifier: Apache-2.0

// Content coding of replies.
#ifndef CROUT_SERVER_NET_COMPRESSION_H_
#define CROUT_SERVER_NET_COMPRESSION_H_

#include <string>
#include <string_view>

namespace crout {

// Whether an Accept-Encoding header allows gzip: it names it, without "q=0".
bool AcceptsGzip(std::string_view accept_encoding);

// `text` as a gzip member. Empty if that fails for want of memory.
std::string Gzip(std::string_view text);

}  // namespace crout

#endif  // CROUT_SERVER_NET_COMPRESSION_H_
