// SPDX-License-Identifier: Apache-2.0

// Unary calls: one request and one response.
#ifndef CROUT_SERVER_RPC_STREAM_UNARY_CALL_H_
#define CROUT_SERVER_RPC_STREAM_UNARY_CALL_H_

#include <string>
#include <utility>

#include "grpcpp/support/server_callback.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/codec/stream_message.h"
#include "server/rpc/stream/call_base.h"

namespace crout {

// Answers a Request with the Response of a handler. Both messages are charged until gRPC is done
// with the call. The handler is short, so it is not stopped when the client leaves.
template <class Request, class Response>
class UnaryCall final : public grpc::ServerUnaryReactor, public CallBase {
 public:
  using Handler = absl::Status (*)(ServerCore& core, const Scope& scope, const Request& request,
                                   Response* response);
  // Selects the thread pool that runs a slow handler.
  using Threads = ThreadPool& (*)(ServerCore& core, const std::string& tenant,
                                  const Request& request);

  UnaryCall(ServerCore& core, grpc::CallbackServerContext* context, Method method, Handler handler)
      : CallBase(core, context, method), handler_(handler) {}

  // Starts the call; call once after construction. If `threads` is null, runs the handler at once
  // on the current thread. The reply is sent with the status, in `reply`, which gRPC owns.
  void Begin(const grpc::ByteBuffer& request, grpc::ByteBuffer* reply, Threads threads) {
    reply_ = reply;
    BeginWithRequest(request, &request_, [&] {
      if constexpr (requires { request_.handle(); }) {
        MutexLock lock(&mutex_);
        observed_.SetHandle(request_.handle());
      }
      if (threads == nullptr) {
        Work();
      } else {
        threads(core_, tenant_, request_).Schedule(tenant_, [self = shared_from_this(), this] {
          DoWork([this] { Work(); });
        });
      }
      return absl::OkStatus();
    });
  }

  void OnCancel() override { Cancelled(); }
  void OnDone() override { Done(); }

 private:
  void StartWriting(const grpc::ByteBuffer& /*message*/) override {}  // streams no messages
  void StartWritingLast(const grpc::ByteBuffer& message, grpc::Status status) override {
    *reply_ = message;
    Finish(std::move(status));
  }
  void StartFinishing(grpc::Status status) override { Finish(std::move(status)); }

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
  bool HoldsResources() const override { return false; }

  const Handler handler_;
  Request request_;  // constant once parsed
  grpc::ByteBuffer* reply_ = nullptr;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STREAM_UNARY_CALL_H_
