// SPDX-License-Identifier: Apache-2.0

// The listener for machines that join a group: its address, its encryption and its identities.
#ifndef CROUT_SERVER_GROUPS_RANK_GATE_H_
#define CROUT_SERVER_GROUPS_RANK_GATE_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/util/mutex.h"
#include "server/auth/identity_reloader.h"
#include "server/auth/tls_files.h"
#include "server/auth/tls_reloader.h"
#include "server/auth/token.h"

namespace crout {

// The daemon's settings for its clients, which hold for ranks too.
struct RankSecurity {
  TlsFiles tls;
  std::string identities_file;  // "": any machine that can connect may join
  SignedTokenSettings signed_tokens;
};

// Admits callers with the role `rank`. Reloads the files every second, as the daemon does for its
// clients. Thread-safe.
class RankGate {
 public:
  // The errors of TlsReloader and IdentityReloader.
  static absl::StatusOr<std::unique_ptr<RankGate>> Create(const RankSecurity& security);
  ~RankGate();
  RankGate(const RankGate&) = delete;  // It owns a thread.
  RankGate& operator=(const RankGate&) = delete;

  std::shared_ptr<grpc::ServerCredentials> credentials() const { return credentials_; }
  // UNAUTHENTICATED without valid credentials; PERMISSION_DENIED without the role. Logs the peer
  // and the reason of refusals, one a second.
  absl::Status Admit(const grpc::ServerContext& context) const;

 private:
  RankGate() = default;
  void RefreshLoop();
  absl::Status Check(const grpc::ServerContext& context) const;

  std::unique_ptr<TlsReloader> tls_;
  std::unique_ptr<IdentityReloader> identities_;  // null: callers are not authenticated
  std::shared_ptr<grpc::ServerCredentials> credentials_;
  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  mutable bool may_log_ ABSL_GUARDED_BY(mutex_) = true;  // one refusal each second
  std::thread refresher_;
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_RANK_GATE_H_
