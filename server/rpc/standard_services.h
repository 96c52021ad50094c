// SPDX-License-Identifier: Apache-2.0

// The standard gRPC services for health (grpc.health.v1) and reflection (grpc.reflection.v1alpha).
// Decision 0050 explains why gRPC's own implementations are not used.
#ifndef CROUT_SERVER_RPC_STANDARD_SERVICES_H_
#define CROUT_SERVER_RPC_STANDARD_SERVICES_H_

#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "grpcpp/generic/async_generic_service.h"
#include "kernels/util/mutex.h"
#include "server/auth/identities.h"
#include "server/rpc/core.h"

namespace crout {

// Receives all calls to services that are not registered. Answers health and reflection calls, and
// refuses all others with UNIMPLEMENTED. With Access::kRoles, health requires the role `metrics`
// and reflection the role `solve`. Open calls hold no thread. At most kMaxCalls calls are open: a
// new call ends the oldest one with RESOURCE_EXHAUSTED. Thread-safe.
class StandardServices final : public grpc::CallbackGenericService {
 public:
  static constexpr size_t kMaxCalls = 1024;

  // Access::kRoles checks callers against the identities of `core`. Health starts as NOT_SERVING.
  StandardServices(ServerCore& core, Access health, Access reflection);

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  // Sets the health status of "" and of FactorizationService, and sends it to all Watch calls.
  void SetServing(bool serving);
  // Ends calls whose callers have lost access, sends delayed refusals of unknown tokens, and
  // cancels ended calls whose clients do not read. Call about every second.
  void EnforceLimits(std::chrono::steady_clock::time_point now);

 private:
  class UnknownCall;
  class ServiceCall;
  enum class Method { kCheck, kWatch, kReflect };

  // Returns the status of "" and of FactorizationService; nullopt for other services.
  std::optional<grpc::health::v1::HealthCheckResponse::ServingStatus> StatusOf(
      std::string_view service) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ServerCore& core_;
  const Access health_;
  const Access reflection_;
  std::vector<std::string> names_;  // services listed by reflection
  Mutex mutex_;                     // also guards the state of every ServiceCall
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<ServiceCall*> calls_ ABSL_GUARDED_BY(mutex_);  // oldest first
};

// Answers one grpc.reflection.v1alpha request from the descriptors linked into the program.
// `services` are the names that ListServices returns. The response is an error response with the
// code NOT_FOUND for an unknown name, and INVALID_ARGUMENT if the request is not set. Thread-safe.
grpc::reflection::v1alpha::ServerReflectionResponse Reflect(
    const grpc::reflection::v1alpha::ServerReflectionRequest& request,
    const std::vector<std::string>& services);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STANDARD_SERVICES_H_
