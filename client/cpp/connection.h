// SPDX-License-Identifier: Apache-2.0

// The connection of a client, and the calls over it.
#ifndef CROUT_CLIENT_CPP_CONNECTION_H_
#define CROUT_CLIENT_CPP_CONNECTION_H_

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/call_scope.h"
#include "client/cpp/field_names.h"
#include "client/cpp/matrix_reply.h"
#include "client/cpp/replicas.h"
#include "client/cpp/retry.h"
#include "client/cpp/shared_memory.h"
#include "client/cpp/stream_call.h"
#include "client/cpp/wire.h"
#include "crout/client_options.h"
#include "crout/results.h"
#include "crout/v1/factorization_service.grpc.pb.h"

namespace crout {
inline namespace api {
namespace internal {

// Thread-safe; all calls share one channel.
class Connection {
 public:
  using Stub = v1::FactorizationService::Stub;

  Connection(ClientOptions options, const std::shared_ptr<grpc::Channel>& channel)
      : options_(std::move(options)),
        shared_memory_(options_.server),
        stub_(channel),
        generic_stub_(channel) {}

  const ClientOptions& options() const { return options_; }
  grpc::GenericStub* generic_stub() { return &generic_stub_; }
  SharedMemory* shared_memory() { return &shared_memory_; }
  Replicas* replicas() { return &replicas_; }
  // Time at which a call with these options ends if it starts now.
  absl::Time DeadlineOf(const CallOptions& call) const;

  // Runs `attempt`, each time with a new context, and retries it until the call's deadline.
  // `handle`: the handle in the request; empty if there is none.
  absl::Status RunWithRetries(RetryClass retry_class, const CallOptions& call,
                              const std::string& handle,
                              absl::FunctionRef<absl::Status(CallScope*)> attempt);

  template <class Request, class Response>
  absl::StatusOr<Response> Unary(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Response*),
                                 RetryClass retry_class, const Request& request,
                                 const CallOptions& call);

  // A call that uploads a matrix or a batch and returns its factor.
  template <class Response>
  absl::StatusOr<FactorDescription> FactorStream(const absl::StatusOr<StreamRequest>& request,
                                                 RetryClass retry_class, const CallOptions& call);

  // A call that returns a matrix, or the solutions of a batch. *factor is set as soon as it
  // arrives; null if Response has none.
  template <class Response, class Result>
  absl::StatusOr<Result> MatrixStream(const absl::StatusOr<StreamRequest>& request,
                                      RetryClass retry_class, FactorDescription* factor,
                                      MatrixSink* x, const CallOptions& call);

  // Runs GetFactors: calls `on_header`, then `on_data` with the pieces of the data. An error of
  // either ends the call and is returned. If the call is retried, `on_header` is called again.
  absl::Status Download(const v1::GetFactorsRequest& request, const CallOptions& call,
                        absl::FunctionRef<absl::Status(const v1::GetFactorsHeader&)> on_header,
                        absl::FunctionRef<absl::Status(absl::Span<const std::byte>)> on_data);

 private:
  const ClientOptions options_;
  std::atomic<bool> reached_ = false;  // a server has answered
  SharedMemory shared_memory_;
  Replicas replicas_;
  Stub stub_;
  grpc::GenericStub generic_stub_;
};

template <class Request, class Response>
absl::StatusOr<Response> Connection::Unary(grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                                           RetryClass retry_class, const Request& request,
                                           const CallOptions& call) {
  if (absl::Status texts = CheckTexts(request); !texts.ok()) return texts;
  Response response;
  const absl::Status status =
      RunWithRetries(retry_class, call, HandleIn(request), [&](CallScope* scope) {
        return ServerStatus((stub_.*method)(scope->context(), request, &response));
      });
  if (!status.ok()) return status;
  return response;
}

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_CONNECTION_H_
