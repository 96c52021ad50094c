// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/caller.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "server/auth/listener_credentials.h"
#include "server/engine/error.h"
#include "server/observability/log/log.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

constexpr char kDefaultTenant[] = "default";

std::string_view NameOf(Method method) { return kMethodNames[static_cast<size_t>(method)]; }

Attempt AttemptOf(const ObservedCall& call) {
  return {.role = RoleFor(call.method),
          .target = NameOf(call.method),
          .peer = call.peer,
          .call = call.id};
}

// Counts a refusal, logs it if CallLog admits the event, and returns `refused` with its reason.
absl::Status Refuse(ServerCore& core, const Attempt& attempt, const std::string& identity,
                    CallerRefusal refusal, absl::Status refused) {
  core.metrics.CountCallerRefused(refusal);
  const std::string_view name = kCallerRefusalNames[static_cast<size_t>(refusal)];
  if (core.observer.AdmitEvent()) {
    nlohmann::ordered_json fields = {{"peer", attempt.peer},
                                     {attempt.is_page ? "page" : "method", attempt.target},
                                     {"identity", identity},
                                     {"reason", name}};
    if (attempt.call != 0) fields["call"] = attempt.call;
    Log(LogLevel::kWarn, "caller_refused", fields);
  }
  return WithReason(std::move(refused), absl::AsciiStrToUpper(ToAbsl(name)));
}

// Reads the token in the metadata. Without one, returns empty credentials. Returns UNAUTHENTICATED
// for another scheme, and for more than one value.
absl::StatusOr<Credentials> ReadToken(const grpc::CallbackServerContext& context,
                                      const Identities& identities) {
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  if (begin == end) return Credentials();
  const auto token = TokenOf({begin->second.data(), begin->second.size()});
  if (token && std::next(begin) == end) return identities.Read(*token);
  return absl::UnauthenticatedError(
      "the authorization metadata must be one value of the form 'Bearer TOKEN'");
}

absl::Status CheckTenantOf(ServerCore& core, const Attempt& attempt, const Identity& identity,
                           const std::string& tenant) {
  if (identity.MayUse(tenant)) return absl::OkStatus();
  return Refuse(core, attempt, identity.name, CallerRefusal::kTenant,
                absl::PermissionDeniedError(absl::StrCat(
                    "'", identity.name, "' may use only the tenant",
                    identity.tenants.size() == 1 ? " " : "s ",
                    absl::StrJoin(identity.tenants, ", "), "; the call names '", tenant, "'")));
}

// The label of this refusal in the metrics.
CallerRefusal ToRefusal(CredentialError error) {
  switch (error) {
    case CredentialError::kUnknownToken:
      return CallerRefusal::kUnknownToken;
    case CredentialError::kExpiredToken:
      return CallerRefusal::kExpiredToken;
    case CredentialError::kEarlyToken:
      return CallerRefusal::kEarlyToken;
    case CredentialError::kForeignToken:
      return CallerRefusal::kForeignToken;
    case CredentialError::kUnknownSubject:
      return CallerRefusal::kUnknownSubject;
    case CredentialError::kUnknownCertificate:
      return CallerRefusal::kUnknownCertificate;
    case CredentialError::kAmbiguousCertificate:
      return CallerRefusal::kAmbiguousCertificate;
    case CredentialError::kNoCredentials:
      break;
  }
  return CallerRefusal::kNoCredentials;
}

// Fills in `caller` from the credentials of the call. The returned identity lives as long as
// caller.identities.
absl::StatusOr<const Identity*> Admit(ServerCore& core, const grpc::CallbackServerContext& context,
                                      const Attempt& attempt, Caller& caller) {
  caller.identities = core.identities->current();
  absl::StatusOr<Credentials> credentials = ReadToken(context, *caller.identities);
  if (!credentials.ok()) {
    return Refuse(core, attempt, "", CallerRefusal::kBadCredentials, credentials.status());
  }
  caller.credentials = *std::move(credentials);
  caller.credentials.certificate_names = VerifiedNames(context.auth_context().get());
  caller.credentials.on_unix_socket = absl::StartsWith(ToAbsl(attempt.peer), "unix:");
  CROUT_ASSIGN_OR_RETURN(const IdentityMatch found,
                         FindIdentity(core, *caller.identities, caller.credentials, attempt));
  caller.identity = found.identity->name;
  caller.roles = found.identity->roles;
  caller.end = found.end;
  return found.identity;
}

// Returns the value of the crout-tenant metadata, or nullopt if there is none.
absl::StatusOr<std::optional<std::string>> DecodeTenant(const grpc::ServerContextBase& context) {
  std::optional<std::string> tenant = MetadataOf(context, "crout-tenant");
  if (tenant && !IsPrincipalName(*tenant)) {
    return BadMessageField("crout-tenant",
                           "metadata must be one value, of 1 to 64 of [A-Za-z0-9_.-]");
  }
  return tenant;
}

// Returns the value of the crout-priority metadata; kNormal if there is none.
absl::StatusOr<QueuePriority> DecodePriority(const grpc::ServerContextBase& context) {
  const std::optional<std::string> name = MetadataOf(context, "crout-priority");
  if (!name) return QueuePriority::kNormal;
  const auto known = std::find(kQueuePriorityNames.begin(), kQueuePriorityNames.end(), *name);
  if (known == kQueuePriorityNames.end()) {
    constexpr size_t kShown = 64;
    return BadMessageField(
        "crout-priority",
        absl::StrCat("'", name->substr(0, kShown),
                     "' is invalid. Send one value: interactive, normal or batch"));
  }
  return static_cast<QueuePriority>(known - kQueuePriorityNames.begin());
}

}  // namespace

std::optional<std::string> MetadataOf(const grpc::ServerContextBase& context, const char* key) {
  std::optional<std::string> all;
  const auto [begin, end] = context.client_metadata().equal_range(key);
  for (auto value = begin; value != end; ++value) {
    if (all) {
      *all += ", ";
    } else {
      all.emplace();
    }
    all->append(value->second.data(), value->second.size());
  }
  return all;
}

absl::StatusOr<IdentityMatch> FindIdentity(ServerCore& core, const Identities& identities,
                                           const Credentials& credentials, const Attempt& attempt) {
  const IdentityMatch found = identities.Match(credentials, WallNow());
  if (found.identity == nullptr) {
    return Refuse(core, attempt, "", ToRefusal(found.error),
                  absl::UnauthenticatedError(Explain(found.error, credentials)));
  }
  if (found.identity->Has(attempt.role)) return found;
  const std::string& name = found.identity->name;
  return Refuse(
      core, attempt, name, CallerRefusal::kRole,
      absl::PermissionDeniedError(absl::StrCat(
          "'", name, "' may not ", attempt.is_page ? "see " : "call ", ToAbsl(attempt.target),
          ": the ", attempt.is_page ? "page" : "call", " needs the role ",
          ToAbsl(kRoleNames[static_cast<size_t>(attempt.role)]), "; ask the operator to add it")));
}

ObservedCall ObserveNewCall(Method method, grpc::ServerContextBase* context) {
  const auto& metadata = context->client_metadata();
  const auto parent = metadata.find("traceparent");
  std::optional<TraceContext> trace;
  if (parent != metadata.end()) {
    trace = ParseTraceparent({parent->second.data(), parent->second.size()});
  }
  ObservedCall call(method, context->peer(), std::move(trace));
  call.audited = RoleFor(method) == Role::kFactor;
  context->AddInitialMetadata("crout-call-id", std::to_string(call.id));
  return call;
}

Role RoleFor(Method method) {
  switch (method) {
    case Method::kFactorize:
    case Method::kRefactorize:
    case Method::kFactorizeAndSolve:
    case Method::kComputeSchurComplement:
    case Method::kReduceToEchelonForm:
    case Method::kSolveSeries:
    case Method::kReleaseFactor:
      return Role::kFactor;
    case Method::kSolve:
    case Method::kGetFactors:
    case Method::kListFactors:
    case Method::kDescribeFactor:
    case Method::kRenewLease:
    case Method::kEstimateFactorize:
    case Method::kGetServerInfo:
      break;
  }
  return Role::kSolve;
}

absl::StatusOr<Caller> AdmitWithoutTenant(ServerCore& core,
                                          const grpc::CallbackServerContext& context,
                                          const Attempt& attempt) {
  Caller caller;
  CROUT_RETURN_IF_ERROR(Admit(core, context, attempt, caller).status());
  return caller;
}

absl::StatusOr<Caller> AdmitCaller(ServerCore& core, const grpc::CallbackServerContext& context,
                                   const ObservedCall& call) {
  Caller caller;
  if (core.identities == nullptr) {
    CROUT_ASSIGN_OR_RETURN(const auto requested, DecodeTenant(context));
    caller.tenant = requested.value_or(kDefaultTenant);
    return caller;
  }
  const Attempt attempt = AttemptOf(call);
  CROUT_ASSIGN_OR_RETURN(const Identity* const identity, Admit(core, context, attempt, caller));
  CROUT_ASSIGN_OR_RETURN(const auto requested, DecodeTenant(context));
  caller.tenant =
      requested.value_or(identity->tenants.empty() ? kDefaultTenant : identity->tenants.front());
  CROUT_RETURN_IF_ERROR(CheckTenantOf(core, attempt, *identity, caller.tenant));
  return caller;
}

absl::Status RecheckCaller(ServerCore& core, const Attempt& attempt, Caller& caller) {
  if (caller.identities == nullptr) return absl::OkStatus();
  auto current = core.identities->current();
  if (current == caller.identities && WallNow() < caller.end) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(const IdentityMatch found,
                         FindIdentity(core, *current, caller.credentials, attempt));
  if (!caller.tenant.empty()) {
    CROUT_RETURN_IF_ERROR(CheckTenantOf(core, attempt, *found.identity, caller.tenant));
  }
  caller.identities = std::move(current);
  caller.end = found.end;
  return absl::OkStatus();
}

absl::Status RecheckCaller(ServerCore& core, const ObservedCall& call, Caller& caller) {
  return RecheckCaller(core, AttemptOf(call), caller);
}

absl::Status CallerCheck::Admit(ServerCore& core, const grpc::CallbackServerContext& context,
                                const ObservedCall& call) {
  CROUT_ASSIGN_OR_RETURN(caller_, AdmitCaller(core, context, call));
  CROUT_ASSIGN_OR_RETURN(caller_.priority, DecodePriority(context));
  return absl::OkStatus();
}

bool CallerCheck::Delay(ServerCore& core, const absl::Status& status, size_t request_bytes) {
  if (ReasonOf(status) != kReasonUnknownToken) return false;
  refused_memory_ = core.refused_memory.TryReserve(ServerCore::kCallBytes + request_bytes);
  if (!refused_memory_) return false;
  refusal_ = status;
  refused_at_ = SteadyNow();
  return true;
}

absl::Status CallerCheck::Check(ServerCore& core, const ObservedCall& call, Clock::time_point now) {
  if (refusal_.ok()) return RecheckCaller(core, call, caller_);
  return now - refused_at_ >= kRefusalDelay ? refusal_ : absl::OkStatus();
}

}  // namespace crout
