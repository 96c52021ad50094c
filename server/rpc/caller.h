// Who makes a call, and whether it may: the one place where callers are checked.
#ifndef CROUT_SERVER_RPC_CALLER_H_
#define CROUT_SERVER_RPC_CALLER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "server/identity/identities.h"
#include "server/rpc/core.h"
#include "server/rpc/observe.h"

namespace crout {

struct Caller {
  std::string tenant;
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

// The reason of a status for a token that no identity has: whoever tries tokens gets it.
inline constexpr std::string_view kReasonUnknownToken = "UNKNOWN_TOKEN";

// Why whoever shows `credentials` is not known, and what to do. Tells no token.
std::string Explain(Stranger stranger, const Credentials& credentials);

// By what the metrics know that.
CallerRefusal ToRefusal(Stranger stranger);

// The role that a call takes.
Role RoleFor(Method method);

// Whose call `call`, which begins, is, by its metadata and its connection's certificate. Without
// --identities everybody may do everything as any tenant. Else UNAUTHENTICATED for a stranger, and
// PERMISSION_DENIED for one who lacks the role or may not use the tenant, each with a reason and
// what to do; counted and logged with the peer. INVALID_ARGUMENT for a tenant that can be none.
absl::StatusOr<Caller> AdmitCaller(ServerCore& core, const grpc::CallbackServerContext& context,
                                   const ObservedCall& call);

// Whether `caller`, who was admitted, still would be: a token can be withdrawn or come to its end.
// Costs next to nothing unless something of that has changed.
// Errors as AdmitCaller().
absl::Status ReadmitCaller(ServerCore& core, const ObservedCall& call, Caller& caller);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALLER_H_
