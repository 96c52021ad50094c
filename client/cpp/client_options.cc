// SPDX-License-Identifier: Apache-2.0

#include "crout/client_options.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace crout {
inline namespace api {
namespace {

constexpr size_t kMaxTenantLength = 64;

absl::Status BadAddress(absl::string_view address, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the server's address '", absl::CEscape(address),
                                                 "' ", why,
                                                 ": write host:port, [IPv6]:port or unix:PATH"));
}

bool IsPort(absl::string_view text) {
  uint32_t port = 0;
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, &port) && port >= 1 && port <= 65535;
}

}  // namespace

absl::Status CheckAddress(absl::string_view address) {
  if (address.empty())
    return absl::InvalidArgumentError(
        "the server's address is empty: write host:port, [IPv6]:port or unix:PATH");
  for (const absl::string_view scheme : {"unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:"}) {
    absl::string_view rest = address;
    if (!absl::ConsumePrefix(&rest, scheme)) continue;
    return rest.empty() ? BadAddress(address, "ends after its scheme") : absl::OkStatus();
  }
  if (!std::all_of(address.begin(), address.end(), absl::ascii_isgraph)) {
    return BadAddress(address, "has characters that are no printable ASCII");
  }
  if (absl::StrContains(address, '/')) return BadAddress(address, "is no host and port");
  const size_t colon = address.rfind(':');
  const bool brackets = absl::StartsWith(address, "[");
  if (colon == address.npos || (brackets && absl::EndsWith(address, "]"))) {
    return BadAddress(address, "has no port");
  }
  const absl::string_view host = address.substr(0, colon);
  if (host.empty()) return BadAddress(address, "has no host");
  if (brackets ? !absl::EndsWith(host, "]") || host.size() < 3 : absl::StrContains(host, ':')) {
    return BadAddress(address, "has an IPv6 address that is not in brackets");
  }
  if (!IsPort(address.substr(colon + 1))) {
    return BadAddress(address, "has no port from 1 to 65535");
  }
  return absl::OkStatus();
}

bool IsLocal(absl::string_view address) {
  if (absl::StartsWith(address, "unix:") || absl::StartsWith(address, "unix-abstract:"))
    return true;
  absl::string_view host = address.substr(0, address.rfind(':'));
  if (absl::EqualsIgnoreCase(host, "localhost")) return true;
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  const std::string text(host);
  in_addr v4 = {};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  in6_addr v6 = {};
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::Status CheckTenant(absl::string_view tenant) {
  const auto allowed = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-';
  };
  if (!tenant.empty() && tenant.size() <= kMaxTenantLength &&
      std::all_of(tenant.begin(), tenant.end(), allowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the tenant '", absl::CEscape(tenant),
                   "' is not a name: write 1 to 64 characters of [A-Za-z0-9_.-]"));
}

absl::Status CheckToken(absl::string_view token) {
  // Less than the server's limit of 8 KiB for the metadata of a call.
  constexpr size_t kMaxLength = 4096;
  if (!token.empty() && token.size() <= kMaxLength &&
      std::all_of(token.begin(), token.end(), absl::ascii_isgraph)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "the token is not 1 to 4096 printable ASCII characters without spaces");
}

}  // namespace api
}  // namespace crout
