// SPDX-License-Identifier: Apache-2.0

// Calls of the standard gRPC services. Their messages are encoded by hand, because the distribution
// has no generated code for grpc.health.v1 and reflection.
#ifndef CROUT_TESTS_E2E_HARNESS_HEALTH_H_
#define CROUT_TESTS_E2E_HARNESS_HEALTH_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <optional>
#include <string>

namespace crout::e2e {

enum class Health { kServing = 1, kNotServing = 2, kUnknownService, kUnreachable };

// Calls grpc.health.v1.Health/Check for `service`. Returns kUnreachable if the call fails otherwise
// than with NOT_FOUND.
Health CheckHealth(const std::shared_ptr<grpc::Channel>& channel, const std::string& service);

// A call of grpc.health.v1.Health/Watch for `service`, from construction to destruction.
class HealthWatch {
 public:
  HealthWatch(const std::shared_ptr<grpc::Channel>& channel, const std::string& service);
  ~HealthWatch();
  HealthWatch(const HealthWatch&) = delete;  // the call refers to the object
  HealthWatch& operator=(const HealthWatch&) = delete;

  // Returns the next status from the server, or nullopt if none arrives within kTestTimeout or the
  // call ends.
  std::optional<Health> Next();

 private:
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::ByteBuffer response_;
  bool reading_ = false;
};

// Returns the encoded reply of the reflection service to list_services. It contains the names of
// the services.
std::string ListServices(const std::shared_ptr<grpc::Channel>& channel);

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_HARNESS_HEALTH_H_
