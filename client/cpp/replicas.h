// SPDX-License-Identifier: Apache-2.0

// The servers that have the client's factors, if several servers share one address.
#ifndef CROUT_CLIENT_CPP_REPLICAS_H_
#define CROUT_CLIENT_CPP_REPLICAS_H_

#include <google/protobuf/message.h>

#include <cstddef>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace crout {
inline namespace api {
namespace internal {

// Metadata that a reply about a factor has, and that each later call on its handle repeats. Proxies
// choose the server by its value.
inline constexpr char kReplicaMetadata[] = "crout-replica";

// Returns the handle in a request or in its header; empty if there is none.
std::string HandleIn(const google::protobuf::Message& request);

// Whether a server refused the call because another server has the factor. The call had no effect.
bool IsOtherReplica(const absl::Status& status);

// The values of the metadata by handle. Thread-safe.
class Replicas {
 public:
  // At least this many handles are stored, those that were set last.
  static constexpr size_t kHandles = 32768;

  // Returns an empty string for an unknown handle.
  std::string Find(const std::string& handle) const;
  // Has no effect if one is empty, or if the value is too long to be one of a server.
  void Set(const std::string& handle, const std::string& value);

 private:
  static constexpr size_t kMaxValue = 128;

  mutable absl::Mutex mutex_;
  std::unordered_map<std::string, std::string> newer_;  // at most kHandles
  std::unordered_map<std::string, std::string> older_;  // replaced when newer_ is full
};

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_REPLICAS_H_
