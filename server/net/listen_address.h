// SPDX-License-Identifier: Apache-2.0

// Parses the listen addresses of settings.
#ifndef CROUT_SERVER_NET_LISTEN_ADDRESS_H_
#define CROUT_SERVER_NET_LISTEN_ADDRESS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace crout {

struct HostPort {
  std::string host;  // a name, an IPv4 address, or an IPv6 address without its brackets
  uint16_t port;     // 0: any free port
};

// Parses "host:port". An IPv6 address needs brackets. INVALID_ARGUMENT if the host or the port is
// missing, or if the port is not a number from 0 to 65535.
absl::StatusOr<HostPort> ParseHostPort(std::string_view address);

// INVALID_ARGUMENT unless `address` is "host:port" as above, or "unix:PATH" with a path that fits
// into a socket address.
absl::Status CheckListenAddress(std::string_view address);

// Replaces the port of `address` ("host:port") with `port`, the port that was bound.
std::string WithPort(std::string_view address, int port);

}  // namespace crout

#endif  // CROUT_SERVER_NET_LISTEN_ADDRESS_H_
