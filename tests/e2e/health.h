// The standard services around Crout's, called with messages written by hand: the distribution has
// neither grpc.health.v1's nor the reflection's generated code.
#ifndef CROUT_TESTS_E2E_HEALTH_H_
#define CROUT_TESTS_E2E_HEALTH_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <optional>
#include <string>

namespace crout::e2e {

enum class Health { kServing = 1, kNotServing = 2, kUnknownService, kUnreachable };

// grpc.health.v1.Health/Check of `service`.
Health CheckHealth(const std::shared_ptr<grpc::Channel>& channel, const std::string& service);

// grpc.health.v1.Health/Watch of `service`, from construction on.
class HealthWatch {
 public:
  HealthWatch(const std::shared_ptr<grpc::Channel>& channel, const std::string& service);
  ~HealthWatch();
  HealthWatch(const HealthWatch&) = delete;  // The call refers to it.
  HealthWatch& operator=(const HealthWatch&) = delete;

  // The next status that the server sends; nothing if none comes or the call ends.
  std::optional<Health> Next();

 private:
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::ByteBuffer response_;
  bool reading_ = false;
};

// The raw answer of the server's reflection to "list services", which contains their names.
std::string ListServices(const std::shared_ptr<grpc::Channel>& channel);

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_HEALTH_H_
