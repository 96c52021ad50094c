// SPDX-License-Identifier: Apache-2.0

// Unary calls: one request and one response.
#ifndef CROUT_SERVER_RPC_STREAM_UNARY_CALL_H_
#define CROUT_SERVER_RPC_STREAM_UNARY_CALL_H_

#include <string>
#include <utility>

#include "grpcpp/support/server_callback.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/codec/wire.h"
#include "server/rpc/stream/call_base.h"

namespace crout {

// Adapts a unary reactor to the interface that Call expects. The reply is sent with the status.
class UnaryReactor : public grpc::ServerUnaryReactor {
 public:
  virtual void OnWriteDone(bool /*ok*/) {}

 protected:
  void StartWriteAndFinish(const grpc::ByteBuffer* message, grpc::WriteOptions /*options*/,
                           grpc::Status status) {
    *reply_ = *message;
    Finish(std::move(status));
  }
  void StartWrite(const grpc::ByteBuffer* /*message*/) {}  // unary calls stream no messages

  grpc::ByteBuffer* reply_ = nullptr;  // owned by gRPC
};

// Answers a Request with the Response of a handler. Both messages are charged until gRPC is done
// with the call. The handler is short, so it is not stopped when the client leaves.
template <class Request, class Response>
class UnaryCall final : public Call<UnaryReactor> {
 public:
  using Handler = absl::Status (*)(ServerCore& core, const Scope& scope, const Request& request,
                                   Response* response);
  // Selects the thread pool that runs a slow handler.
  using Threads = ThreadPool& (*)(ServerCore& core, const std::string& tenant,
                                  const Request& request);

  UnaryCall(ServerCore& core, grpc::CallbackServerContext* context, Method method, Handler handler)
      : Call(core, context, method), handler_(handler) {}

  // Starts the call; call once after construction. If `threads` is null, runs the handler at once
  // on the current thread.
  void Begin(const grpc::ByteBuffer& request, grpc::ByteBuffer* reply, Threads threads) {
    reply_ = reply;
    DoWork([&] {
      absl::Status status = Enter();
      if (!status.ok()) return Refuse(std::move(status), request.Length());
      status = Start(request);
      if (!status.ok()) return Abort(std::move(status));
      if (threads == nullptr) return Work();
      threads(core_, tenant_, request_).Schedule(tenant_, [self = shared_from_this(), this] {
        DoWork([this] { Work(); });
      });
    });
  }

 private:
  absl::Status Start(const grpc::ByteBuffer& request) {
    CROUT_RETURN_IF_ERROR(ParseAndCharge(request, &request_));
    MutexLock lock(&mutex_);
    if constexpr (requires { request_.handle(); }) observed_.SetHandle(request_.handle());
    return absl::OkStatus();
  }
  absl::StatusOr<grpc::ByteBuffer> MakeReply() {
    Response response;
    CROUT_RETURN_IF_ERROR(handler_(core_, Scope{tenant_, roles_}, request_, &response));
    grpc::ByteBuffer reply = Serialize(response);
    CROUT_RETURN_IF_ERROR(ChargeMore(reply.Length()));
    return reply;
  }
  void Work() {
    absl::StatusOr<grpc::ByteBuffer> reply = MakeReply();
    MutexLock lock(&mutex_);
    if (!reply.ok()) return End(reply.status());
    EndWith([reply = *std::move(reply)] { return reply; });
  }
  bool OutlivesClient() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return true; }
  void ReleaseResources() override {}

  const Handler handler_;
  Request request_;  // constant after Start()
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STREAM_UNARY_CALL_H_
