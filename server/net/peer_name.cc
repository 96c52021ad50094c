// SPDX-License-Identifier: Apache-2.0

#include "server/net/peer_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

using Address = std::array<uint8_t, 16>;
constexpr int kAddressBits = 128;
constexpr int kMappedBits = 96;  // prefix of an IPv4-mapped address
constexpr int kSharedBits = 64;  // one holder usually owns the whole network

// Returns the address as IPv6, an IPv4 address in mapped form. Returns nothing for other text.
std::optional<Address> ParseAddress(const std::string& text) {
  Address address = {};
  if (inet_pton(AF_INET, text.c_str(), &address[12]) == 1) {
    address[10] = address[11] = 0xff;
    return address;
  }
  if (inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
  return std::nullopt;
}

bool IsMapped(const Address& address) {
  in6_addr as_ipv6 = {};
  std::memcpy(&as_ipv6, address.data(), address.size());
  return IN6_IS_ADDR_V4MAPPED(&as_ipv6);
}

// Clears all bits after the first `bits`.
Address Masked(Address address, int bits) {
  for (int byte = 0; byte < static_cast<int>(address.size()); ++byte) {
    const int kept = std::clamp(bits - 8 * byte, 0, 8);
    address[byte] &= static_cast<uint8_t>(0xff00 >> kept);
  }
  return address;
}

bool IsUnix(std::string_view peer) { return absl::StartsWith(ToAbsl(peer), "unix"); }

}  // namespace

std::optional<TcpPeer> ParseTcpPeer(std::string_view peer) {
  absl::string_view rest = ToAbsl(peer);
  if (!absl::ConsumePrefix(&rest, "ipv4:") && !absl::ConsumePrefix(&rest, "ipv6:")) {
    return std::nullopt;
  }
  const size_t colon = rest.rfind(':');
  uint32_t port = 0;
  if (colon == rest.npos || !absl::SimpleAtoi(rest.substr(colon + 1), &port) || port > 0xffff) {
    return std::nullopt;
  }
  std::string host(rest.substr(0, colon));
  host = absl::StrReplaceAll(host, {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
  const auto address = ParseAddress(host.substr(0, host.find('%')));  // without its zone
  if (!address) return std::nullopt;
  return TcpPeer{*address, static_cast<uint16_t>(port)};
}

absl::StatusOr<TrustedProxies> TrustedProxies::Parse(const std::vector<std::string>& entries) {
  TrustedProxies proxies;
  for (const std::string& entry : entries) {
    if (entry == "unix") {
      proxies.unix_ = true;
      continue;
    }
    const size_t slash = entry.find('/');
    const auto address = ParseAddress(entry.substr(0, slash));
    const int max_bits = address && IsMapped(*address) ? kAddressBits - kMappedBits : kAddressBits;
    int bits = max_bits;
    const bool good =
        slash == std::string::npos || absl::SimpleAtoi(entry.substr(slash + 1), &bits);
    if (!address || !good || bits < 0 || bits > max_bits) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", entry, "' is not a proxy: write an address, a network such as 10.0.0.0/8, or unix"));
    }
    bits += kAddressBits - max_bits;
    proxies.networks_.push_back({Masked(*address, bits), bits});
  }
  return proxies;
}

bool TrustedProxies::Has(std::string_view peer) const {
  if (IsUnix(peer)) return unix_;
  const auto from = ParseTcpPeer(peer);
  return from && std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
           return Masked(from->address, network.bits) == network.address;
         });
}

std::string CallMemoryAccount(std::string_view peer, std::string_view user,
                              std::string_view identity, const TrustedProxies& proxies) {
  if (!identity.empty()) return absl::StrCat("identity ", ToAbsl(identity));
  if (proxies.Has(peer)) return "";
  if (IsUnix(peer)) return absl::StrCat("user ", ToAbsl(user));
  const auto from = ParseTcpPeer(peer);
  if (!from) return "";
  const Address shared =
      Masked(from->address, IsMapped(from->address) ? kAddressBits : kSharedBits);
  return absl::StrCat("address ", std::string(shared.begin(), shared.end()));
}

}  // namespace crout
