// SPDX-License-Identifier: Apache-2.0

// Connects a call to its gRPC reactor. CallBase implements the call.
#ifndef CROUT_SERVER_RPC_STREAM_CALL_H_
#define CROUT_SERVER_RPC_STREAM_CALL_H_

#include <utility>

#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/rpc/stream/call_base.h"

namespace crout {

// Reactor is grpc::ServerBidiReactor or grpc::ServerWriteReactor over ByteBuffer, or UnaryReactor.
template <class Reactor>
class Call : public Reactor, public CallBase {
 public:
  void OnCancel() override { Cancelled(); }
  void OnWriteDone(bool ok) override { WriteDone(ok); }
  void OnDone() override { Done(); }

 protected:
  Call(ServerCore& core, grpc::CallbackServerContext* context, Method method)
      : CallBase(core, context, method) {}

 private:
  void StartWriting(const grpc::ByteBuffer& message) final { this->StartWrite(&message); }
  void StartWritingLast(const grpc::ByteBuffer& message, grpc::Status status) final {
    this->StartWriteAndFinish(&message, grpc::WriteOptions(), std::move(status));
  }
  void StartFinishing(grpc::Status status) final { this->Finish(std::move(status)); }
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STREAM_CALL_H_
