// SPDX-License-Identifier: Apache-2.0

#include "server/groups/rank_gate.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/thread.h"
#include "server/auth/identities.h"
#include "server/auth/listener_credentials.h"
#include "server/observability/log/log.h"

namespace crout {

absl::StatusOr<std::unique_ptr<RankGate>> RankGate::Create(const RankSecurity& security) {
  std::unique_ptr<RankGate> gate(new RankGate);
  CROUT_ASSIGN_OR_RETURN(gate->tls_, TlsReloader::Create(security.tls));
  if (!security.identities_file.empty()) {
    CROUT_ASSIGN_OR_RETURN(gate->identities_, IdentityReloader::Create(security.identities_file,
                                                                       security.signed_tokens));
  }
  gate->credentials_ = security.tls.enabled() ? ListenerCredentials(gate->tls_->published())
                                              : grpc::InsecureServerCredentials();
  gate->refresher_ = StartThread([gate = gate.get()] { gate->RefreshLoop(); });
  return gate;
}

RankGate::~RankGate() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
  }
  if (refresher_.joinable()) refresher_.join();
}

void RankGate::RefreshLoop() {
  constexpr std::chrono::seconds kPeriod{1};
  MutexLock lock(&mutex_);
  while (!stopping_) {
    wake_.WaitUntil(&mutex_, SteadyNow() + kPeriod);
    if (stopping_) return;
    may_log_ = true;
    tls_->Refresh();
    if (identities_ != nullptr) identities_->Refresh();
  }
}

absl::Status RankGate::Admit(const grpc::ServerContext& context) const {
  const absl::Status status = Check(context);
  if (status.ok()) return status;
  MutexLock lock(&mutex_);
  if (std::exchange(may_log_, false)) {
    Log(LogLevel::kWarn, "rank_refused", {{"peer", context.peer()}, {"reason", status.message()}});
  }
  return status;
}

absl::Status RankGate::Check(const grpc::ServerContext& context) const {
  if (identities_ == nullptr) return absl::OkStatus();
  const std::shared_ptr<const Identities> identities = identities_->current();
  Credentials credentials;
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  if (begin != end) {
    const auto token = TokenOf({begin->second.data(), begin->second.size()});
    if (!token || std::next(begin) != end) {
      return absl::UnauthenticatedError(
          "the authorization metadata must be one value of the form 'Bearer TOKEN'");
    }
    credentials = identities->Read(*token);
  }
  credentials.certificate_names = VerifiedNames(context.auth_context().get());
  credentials.on_unix_socket = absl::StartsWith(context.peer(), "unix:");
  const IdentityMatch found = identities->Match(credentials, WallNow());
  if (found.identity == nullptr) {
    return absl::UnauthenticatedError(Explain(found.error, credentials));
  }
  if (found.identity->Has(Role::kRank)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("'", found.identity->name,
                   "' may not join a group: this needs the role rank; ask the operator to add it"));
}

}  // namespace crout
