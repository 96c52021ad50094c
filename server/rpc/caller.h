// SPDX-License-Identifier: Apache-2.0

// Who makes a call, and whether it may: the one place where callers are checked.
#ifndef CROUT_SERVER_RPC_CALLER_H_
#define CROUT_SERVER_RPC_CALLER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "server/auth/identities.h"
#include "server/rpc/core.h"
#include "server/rpc/observe.h"

namespace crout {

// What somebody asks for, and from where: the log's line and the message of a refusal name it.
struct Attempt {
  Role role;              // that it takes
  std::string_view what;  // a call's method, or the path of a page
  std::string_view peer;  // as gRPC names it, or host:port
  uint64_t call = 0;      // its number, where it has one
  bool is_page = false;
};

struct Caller {
  std::string tenant;    // "" where what is asked for is no tenant's
  std::string identity;  // "" where nobody is asked
  Roles roles = Roles().set();
  Credentials credentials;
  std::shared_ptr<const Identities> known_to;  // that the caller was found in; null: nobody asked
  absl::Time end = absl::InfiniteFuture();     // when the credentials end
};

// What a caller may see and do of what there is.
struct Scope {
  const std::string& tenant;  // whose factors they are
  Roles roles;                // all of them where nobody is asked
  bool has(Role role) const { return roles[static_cast<size_t>(role)]; }
};

// The reason of a status for a token that no identity has: whoever tries tokens gets it, and only
// after so long.
inline constexpr std::string_view kReasonUnknownToken = "UNKNOWN_TOKEN";
inline constexpr std::chrono::seconds kRefusalTime{1};

// Whom `credentials` show at the moment: an identity that has the role. Else UNAUTHENTICATED for a
// stranger and PERMISSION_DENIED for one who lacks the role, each with a reason and what to do, and
// no token; counted, and logged with the peer.
absl::StatusOr<Recognition> FindIdentity(ServerCore& core, const Identities& identities,
                                         const Credentials& credentials, const Attempt& attempt);

// The role that a call takes.
Role RoleFor(Method method);

// Who attempts something that is no tenant's, by its metadata and its connection's certificate; on
// a server with --identities. Errors as FindIdentity().
absl::StatusOr<Caller> AdmitVisitor(ServerCore& core, const grpc::CallbackServerContext& context,
                                    const Attempt& attempt);

// Whose call `call`, which begins, is, likewise. Without --identities everybody may do everything
// as any tenant. Errors as FindIdentity(), and PERMISSION_DENIED for a tenant that it may not use;
// INVALID_ARGUMENT for a tenant that can be none.
absl::StatusOr<Caller> AdmitCaller(ServerCore& core, const grpc::CallbackServerContext& context,
                                   const ObservedCall& call);

// Whether `caller`, who was admitted, still would be: a token can be withdrawn or come to its end.
// Costs next to nothing unless something of that has changed.
// Errors as AdmitVisitor() and AdmitCaller().
absl::Status ReadmitCaller(ServerCore& core, const Attempt& attempt, Caller& caller);
absl::Status ReadmitCaller(ServerCore& core, const ObservedCall& call, Caller& caller);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALLER_H_
