// SPDX-License-Identifier: Apache-2.0

#include "server/net/listen_address.h"

#include <sys/un.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr int kMaxPort = 65535;

absl::Status Malformed(std::string_view address, std::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", ToAbsl(address), "' is not ", ToAbsl(expected)));
}

// Returns true if `*host` is well-formed, and removes the brackets of an IPv6 address. Only a host
// in brackets may contain a colon.
bool ParseHost(std::string_view* host) {
  const bool bracketed = host->starts_with('[') && host->ends_with(']');
  if (bracketed) *host = host->substr(1, host->size() - 2);
  if (host->empty() || bracketed != (host->find(':') != std::string_view::npos)) return false;
  return std::all_of(host->begin(), host->end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
  });
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(std::string_view address) {
  constexpr std::string_view kExpected = "host:port with a port from 0 to 65535";
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return Malformed(address, kExpected);
  std::string_view host = address.substr(0, colon);
  const std::string_view digits = address.substr(colon + 1);
  int port = 0;
  if (!ParseHost(&host) || !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(ToAbsl(digits), &port) || port > kMaxPort) {
    return Malformed(address, kExpected);
  }
  return HostPort{std::string(host), static_cast<uint16_t>(port)};
}

absl::Status CheckListenAddress(std::string_view address) {
  if (!address.starts_with(kUnix)) return ParseHostPort(address).status();
  const size_t length = address.size() - kUnix.size();
  if (length == 0 || length >= sizeof(sockaddr_un::sun_path)) {
    return Malformed(address, absl::StrCat("unix:PATH with a path of 1 to ",
                                           sizeof(sockaddr_un::sun_path) - 1, " bytes"));
  }
  return absl::OkStatus();
}

std::string WithPort(std::string_view address, int port) {
  return absl::StrCat(ToAbsl(address.substr(0, address.rfind(':') + 1)), port);
}

}  // namespace crout
