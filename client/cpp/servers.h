// Servers by name: what a user's file says of each.
#ifndef CROUT_CLIENT_CPP_SERVERS_H_
#define CROUT_CLIENT_CPP_SERVERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "crout/options.h"

namespace crout::client {

// The section [name] of `text`, the file of servers at `path`. NOT_FOUND where there is none;
// INVALID_ARGUMENT with the line for whatever is wrong in `text`, in any section.
absl::StatusOr<ClientOptions> ReadServer(absl::string_view text, const std::string& path,
                                         absl::string_view name);

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_SERVERS_H_
