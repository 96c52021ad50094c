// SPDX-License-Identifier: Apache-2.0

// The replica that has the factor of a call: the metadata "crout-replica". Its value is
// NAME.FOLDER: the name of a daemon, and the folder of the factor in the shared store.
#ifndef CROUT_SERVER_REPLICAS_CALL_REPLICA_H_
#define CROUT_SERVER_REPLICAS_CALL_REPLICA_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/engine/cache/factor_cache.h"
#include "server/replicas/folder_homes.h"

namespace crout {

inline constexpr std::string_view kReasonOtherReplica = "OTHER_REPLICA";

// Not thread-safe.
class CallReplica {
 public:
  static constexpr char kMetadata[] = "crout-replica";

  // `homes` is null if no other daemon shares the store: then no other function has an effect.
  explicit CallReplica(FolderHomes* homes) : homes_(homes) {}

  // Sets the value in the call. Returns false if it is malformed.
  bool Set(std::string_view value);

  // Replaces NOT_FOUND for a handle if another daemon has, or a daemon will soon have, the factors
  // of the folder that the call names, or if the call names another daemon that lives: UNAVAILABLE
  // (reason OTHER_REPLICA). The status has a retry delay unless the client can send the call to the
  // owner at once.
  absl::Status Explain(absl::Status status);

  // Returns the value for the reply of a tenant's call on `handle`; empty if there is none.
  std::string ReplyValue(const FactorCache& cache, std::string_view tenant,
                         const std::optional<Handle>& handle) const;

 private:
  // Replaces NOT_FOUND for a handle of no stored factor of the folder: the daemon that the call
  // names keeps its other factors when it loses a folder.
  absl::Status AskNamed(absl::Status status);

  FolderHomes* homes_;
  std::string name_;    // the name in the call; empty if it names no replica
  std::string folder_;  // the folder in the call; empty if it names no replica
  bool was_here_ = false;
  std::string home_;  // NAME.FOLDER of the owner; empty unless Explain() found one
};

}  // namespace crout

#endif  // CROUT_SERVER_REPLICAS_CALL_REPLICA_H_
