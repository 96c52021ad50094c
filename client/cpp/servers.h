// SPDX-License-Identifier: Apache-2.0

// Reads the file of named servers (ServersFile() in crout/options.h).
#ifndef CROUT_CLIENT_CPP_SERVERS_H_
#define CROUT_CLIENT_CPP_SERVERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/client_options.h"

namespace crout {
inline namespace api {
namespace internal {

// Reads the section [name] of `text`, the content of the file at `path`. NOT_FOUND if there is no
// such section; INVALID_ARGUMENT, with the line, for an error in any section.
absl::StatusOr<ClientOptions> ReadServer(absl::string_view text, const std::string& path,
                                         absl::string_view name);

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_SERVERS_H_
