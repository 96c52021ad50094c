// SPDX-License-Identifier: Apache-2.0

// Addresses to serve on, as settings give them.
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
  uint16_t port;     // 0: any that is free
};

// Reads "host:port"; an IPv6 address stands in brackets. INVALID_ARGUMENT for anything else: no
// host, no port, or a port that is no number from 0 to 65535.
absl::StatusOr<HostPort> ParseHostPort(std::string_view address);

// INVALID_ARGUMENT unless `address` is "host:port" as above, or "unix:PATH" with a path that fits a
// socket's address.
absl::Status CheckListenAddress(std::string_view address);

// `address` ("host:port") with the port that was bound in place of its own.
std::string WithPort(std::string_view address, int port);

}  // namespace crout

#endif  // CROUT_SERVER_NET_LISTEN_ADDRESS_H_
