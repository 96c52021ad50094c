// SPDX-License-Identifier: Apache-2.0

// The replica that has the factor of a call: the metadata "crout-replica". Its value is
// NAME.FOLDER: the name of a daemon, and the folder of the factor in the shared store.
#ifndef CROUT_SERVER_RPC_CALL_REPLICA_H_
#define CROUT_SERVER_RPC_CALL_REPLICA_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "server/engine/cache/handle.h"
#include "server/rpc/core.h"

namespace crout {

inline constexpr std::string_view kReasonOtherReplica = "OTHER_REPLICA";

// Not thread-safe. Has no effect if the server shares its store with no other daemon.
class CallReplica {
 public:
  // Reads the metadata of a new call. INVALID_ARGUMENT for a malformed value.
  absl::Status Begin(const ServerCore& core, const grpc::ServerContextBase& context);

  // Replaces NOT_FOUND for a handle if another daemon has, or a daemon will soon have, the factors
  // of the folder that the call names: UNAVAILABLE (reason OTHER_REPLICA). The status has a retry
  // delay unless the client can send the call to the owner at once.
  absl::Status Explain(const ServerCore& core, absl::Status status);

  // Returns the metadata of the reply of a tenant's call on `handle`; empty if there is none.
  std::string ReplyValue(const ServerCore& core, std::string_view tenant,
                         const std::optional<Handle>& handle) const;

 private:
  std::string name_;    // the name in the call; empty if it names no replica
  std::string folder_;  // the folder in the call; empty if it names no replica
  bool was_here_ = false;
  std::string home_;  // NAME.FOLDER of the owner; empty unless Explain() found one
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALL_REPLICA_H_
