// SPDX-License-Identifier: Apache-2.0

// Recognizes hosts that are reachable only from this machine.
#ifndef CROUT_KERNELS_UTIL_LOOPBACK_H_
#define CROUT_KERNELS_UTIL_LOOPBACK_H_

#include <arpa/inet.h>
#include <netinet/in.h>

#include <string>

#include "absl/strings/match.h"

namespace crout {

// Returns true for localhost and for loopback addresses. `host`: a name, an IPv4 address, or an
// IPv6 address without its brackets. Other names may resolve to any address, also
// "127.example.org".
inline bool IsLoopbackHost(const std::string& host) {
  if (absl::EqualsIgnoreCase(host, "localhost")) return true;
  in_addr v4 = {};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  in6_addr v6 = {};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_LOOPBACK_H_
