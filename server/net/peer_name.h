// SPDX-License-Identifier: Apache-2.0

// Which peer makes a call, for its share of the memory of calls.
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
  std::array<uint8_t, 16> address = {};  // IPv6; of IPv4 in its mapped form
  uint16_t port = 0;
  friend bool operator==(const TcpPeer&, const TcpPeer&) = default;
};
// Reads a peer as gRPC names it: "ipv4:10.0.0.7:50051". None for a Unix socket.
std::optional<TcpPeer> ParseTcpPeer(std::string_view peer);

// Proxies, each of which makes the calls of many clients. Constant, and then thread-safe.
class TrustedProxies {
 public:
  // Each entry is an address, "10.0.0.7" or "fd00::7", a network, "10.0.0.0/8", or "unix" for every
  // Unix socket. INVALID_ARGUMENT for anything else.
  static absl::StatusOr<TrustedProxies> Parse(const std::vector<std::string>& entries);

  // `peer` is named as gRPC does: "ipv4:10.0.0.7:50051", "ipv6:%5Bfd00::7%5D:50051", "unix:".
  bool Has(std::string_view peer) const;

 private:
  struct Network {
    std::array<uint8_t, 16> address;  // IPv6; of IPv4 in its mapped form
    int bits;
  };
  std::vector<Network> networks_;
  bool unix_ = false;
};

// Names the peer whose share a call is charged to: the caller's identity where there is one, else
// the IPv4 address, the first 64 bits of an IPv6 address, or the `user` of a Unix socket. "" for a
// trusted proxy, and for a call within the process.
std::string SharingPeer(std::string_view peer, std::string_view user, std::string_view identity,
                        const TrustedProxies& proxies);

}  // namespace crout

#endif  // CROUT_SERVER_NET_PEER_NAME_H_
