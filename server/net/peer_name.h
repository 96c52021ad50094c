// SPDX-License-Identifier: Apache-2.0

// Names of peers. Calls of one peer share a part of the call memory.
#ifndef CROUT_SERVER_NET_PEER_NAME_H_
#define CROUT_SERVER_NET_PEER_NAME_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace crout {

// The address and port of a TCP peer.
struct TcpPeer {
  std::array<uint8_t, 16> address = {};  // IPv6, or IPv4-mapped (RFC 4291, 2.5.5.2)
  uint16_t port = 0;
  friend bool operator==(const TcpPeer&, const TcpPeer&) = default;
};
// Parses gRPC's name of a peer, such as "ipv4:10.0.0.7:50051" or "ipv6:%5Bfd00::7%5D:50051".
// Returns nothing for a Unix socket and for malformed names.
std::optional<TcpPeer> ParseTcpPeer(std::string_view peer);

// The proxies of --trusted-proxies, each of which relays calls of many clients. Immutable and
// thread-safe.
class TrustedProxies {
 public:
  // Each entry is an address, "10.0.0.7" or "fd00::7", a network, "10.0.0.0/8", or "unix" for every
  // Unix socket. INVALID_ARGUMENT for anything else.
  static absl::StatusOr<TrustedProxies> Parse(const std::vector<std::string>& entries);

  // Returns true if `peer`, a name as for ParseTcpPeer() or "unix:", is a proxy.
  bool Has(std::string_view peer) const;

 private:
  struct Network {
    std::array<uint8_t, 16> address;  // IPv6, or IPv4-mapped (RFC 4291, 2.5.5.2)
    int bits;
  };
  std::vector<Network> networks_;
  bool unix_ = false;
};

// Returns the name under which a call is charged for call memory. It is derived from the caller's
// `identity` if there is one, else from the IPv4 address, the first 64 bits of the IPv6 address, or
// the `user` of a Unix socket. Calls of a trusted proxy, and calls within the process, have the
// name "" and no share.
std::string CallMemoryAccount(std::string_view peer, std::string_view user,
                              std::string_view identity, const TrustedProxies& proxies);

}  // namespace crout

#endif  // CROUT_SERVER_NET_PEER_NAME_H_
