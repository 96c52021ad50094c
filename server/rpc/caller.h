// SPDX-License-Identifier: Apache-2.0

// Authenticates callers and checks their permissions. All such checks are here.
#ifndef CROUT_SERVER_RPC_CALLER_H_
#define CROUT_SERVER_RPC_CALLER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "kernels/util/fair_queue.h"
#include "server/auth/identities.h"
#include "server/observability/calls/observed_call.h"
#include "server/rpc/core.h"

namespace crout {

// An attempt to access the server. The log line and the message of a refusal name these fields.
struct Attempt {
  Role role;                // the role that is required
  std::string_view target;  // method of a call, or path of a page
  std::string_view peer;    // gRPC's name of the peer, or host:port
  uint64_t call = 0;        // number of the call; 0: none
  bool is_page = false;
};

struct Caller {
  std::string tenant;  // "" if the attempt concerns no tenant
  QueuePriority priority = QueuePriority::kNormal;
  std::string identity;  // "" if the server does not authenticate callers
  Roles roles = Roles().set();
  Credentials credentials;
  // The identities in which the caller was found; null if the server does not authenticate callers.
  std::shared_ptr<const Identities> identities;
  absl::Time end = absl::InfiniteFuture();  // expiry of the credentials
};

// The tenant and the roles that limit a caller.
struct Scope {
  const std::string& tenant;  // owner of the factors
  Roles roles;                // all roles if the server does not authenticate callers
  bool has(Role role) const { return roles[static_cast<size_t>(role)]; }
};

// Reason of the status for an unknown token. The server delays this refusal by kRefusalDelay, which
// slows down attempts to guess a token.
inline constexpr std::string_view kReasonUnknownToken = "UNKNOWN_TOKEN";
inline constexpr std::chrono::seconds kRefusalDelay{1};

// Returns the value of a call's metadata with this key; nullopt if there is none. Several values
// are joined by ", ".
std::optional<std::string> MetadataOf(const grpc::ServerContextBase& context, const char* key);

// Finds the identity that `credentials` currently belong to, and checks that it has the role.
// Returns UNAUTHENTICATED for unknown credentials and PERMISSION_DENIED for a missing role. The
// status has a reason, and its message explains what to do; it never contains a token. A refusal is
// counted, and is logged with the peer if CallLog admits the event.
absl::StatusOr<IdentityMatch> FindIdentity(ServerCore& core, const Identities& identities,
                                           const Credentials& credentials, const Attempt& attempt);

// The role that a call requires.
Role RoleFor(Method method);

// Returns the data of a new call, and sends its id to the client in the metadata "crout-call-id".
// Reads the trace from the metadata "traceparent". Calls that can change factors are audited.
ObservedCall ObserveNewCall(Method method, grpc::ServerContextBase* context);

// Authenticates an attempt that concerns no tenant, by its metadata and the certificate of its
// connection. The server must have --identities. Errors are those of FindIdentity(), and
// UNAUTHENTICATED for malformed metadata.
absl::StatusOr<Caller> AdmitWithoutTenant(ServerCore& core,
                                          const grpc::CallbackServerContext& context,
                                          const Attempt& attempt);

// Authenticates the new call `call` and determines its tenant. Without --identities, every caller
// has all roles and may use every tenant. Errors are those of AdmitWithoutTenant(),
// PERMISSION_DENIED for a tenant that the caller may not use, and INVALID_ARGUMENT for an invalid
// tenant name.
absl::StatusOr<Caller> AdmitCaller(ServerCore& core, const grpc::CallbackServerContext& context,
                                   const ObservedCall& call);

// Checks that `caller`, admitted before, is still allowed. A token can be withdrawn or expire. The
// check is cheap unless the identities have changed or the credentials have expired. Errors are
// those of FindIdentity(), and PERMISSION_DENIED for a tenant that the caller may no longer use.
absl::Status RecheckCaller(ServerCore& core, const Attempt& attempt, Caller& caller);
absl::Status RecheckCaller(ServerCore& core, const ObservedCall& call, Caller& caller);

// Checks that the caller may make a call, when the call begins and while it lasts. Not thread-safe.
class CallerCheck {
 public:
  using Clock = std::chrono::steady_clock;

  // Authenticates the new call `call` and reads its priority. Errors are those of AdmitCaller(),
  // and INVALID_ARGUMENT for an unknown priority.
  absl::Status Admit(ServerCore& core, const grpc::CallbackServerContext& context,
                     const ObservedCall& call);
  const Caller& caller() const { return caller_; }

  // Delays the refusal of a call if `status` reports an unknown token, which slows down attempts to
  // guess one. Requires enough refused_memory for the call and for `request_bytes` bytes of its
  // request. Returns true if the refusal is delayed; Check() then returns it after
  // kRefusalDelay.
  bool Delay(ServerCore& core, const absl::Status& status, size_t request_bytes);

  // Returns the status with which the call must end at `now`: a refusal that has been delayed long
  // enough, or an error because the caller is no longer allowed to make the call. OK if the call
  // may continue.
  absl::Status Check(ServerCore& core, const ObservedCall& call, Clock::time_point now);

 private:
  Caller caller_;
  absl::Status refusal_;  // delayed refusal; OK if there is none
  Clock::time_point refused_at_;
  std::optional<Reservation> refused_memory_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALLER_H_
