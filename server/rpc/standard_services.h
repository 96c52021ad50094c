// SPDX-License-Identifier: Apache-2.0

// gRPC's standard services beside ours: health (grpc.health.v1) and reflection
// (grpc.reflection.v1alpha). Why they are not gRPC's own: decision 0050.
#ifndef CROUT_SERVER_RPC_STANDARD_SERVICES_H_
#define CROUT_SERVER_RPC_STANDARD_SERVICES_H_

#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grpc/health/v1/health.pb.h"
#include "grpcpp/generic/async_generic_service.h"
#include "kernels/util/mutex.h"
#include "server/auth/access.h"
#include "server/rpc/core.h"

namespace crout {

// Takes every call that is for no registered service: UNIMPLEMENTED unless it is for one of these.
// With Access::kRoles health takes the role metrics and the reflection the role solve, as calls of
// FactorizationService take theirs. Its calls hold no thread and are bounded: beyond kMostVisits
// the oldest ends, RESOURCE_EXHAUSTED, so that nobody keeps others out. Thread-safe.
class StandardServices final : public grpc::CallbackGenericService {
 public:
  static constexpr size_t kMostVisits = 1024;

  // `core`: Access::kRoles needs its identities. Health is NOT_SERVING at first.
  StandardServices(ServerCore& core, Access health, Access reflection);

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  // What health says from now on, of "" and of FactorizationService; those who watch are told.
  void SetServing(bool serving);
  // Ends calls whose callers may no longer make them, tells those who tried tokens, and cuts off
  // who does not read; every second or so.
  void EnforceLimits(std::chrono::steady_clock::time_point now);

 private:
  class Stray;
  class Visit;
  enum class Method { kCheck, kWatch, kReflect };

  // Of "" and of FactorizationService; none of others.
  std::optional<grpc::health::v1::HealthCheckResponse::ServingStatus> StatusOf(
      std::string_view service) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ServerCore& core_;
  const Access health_;
  const Access reflection_;
  std::vector<std::string> names_;  // of the services that are there, ours included
  Mutex mutex_;                     // of every Visit, too
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Visit*> visits_ ABSL_GUARDED_BY(mutex_);  // in the order in which they came
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STANDARD_SERVICES_H_
