// SPDX-License-Identifier: Apache-2.0

// gzip compression of HTTP replies.
#ifndef CROUT_SERVER_NET_COMPRESSION_H_
#define CROUT_SERVER_NET_COMPRESSION_H_

#include <string>
#include <string_view>

namespace crout {

// Returns true if an Accept-Encoding header lists gzip without "q=0".
bool AcceptsGzip(std::string_view accept_encoding);

// Compresses `text` to the gzip format. Returns an empty string if memory runs out.
std::string Gzip(std::string_view text);

}  // namespace crout

#endif  // CROUT_SERVER_NET_COMPRESSION_H_
