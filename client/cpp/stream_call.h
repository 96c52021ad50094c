// Runs one bidirectional streaming call from start to status, on the calling thread.
#ifndef CROUT_CLIENT_CPP_STREAM_CALL_H_
#define CROUT_CLIENT_CPP_STREAM_CALL_H_

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/cpp/call_scope.h"
#include "client/cpp/message_writer.h"
#include "crout/matrix_source.h"

namespace crout::client {

// What is sent: the first message without payload, then the payloads, of which each is opened when
// the call starts.
struct StreamRequest {
  struct Payload {
    int number;
    const MatrixSource* source;
  };
  std::string method;  // "/package.Service/Method"
  std::string first;
  std::vector<Payload> payloads;
};

// Sends everything while handing each response to `on_response`; an error of `on_response`, or of
// reading a payload, cancels the call and is returned. A server that ends the call early ends it
// with its own status, whatever was still to be sent. `on_sent` (may be empty) is told how many
// payload bytes have been sent after each message.
//
// Returns when gRPC holds no reference to the payloads' memory any more. That is at once, unless
// the call was cancelled while the peer does not read from its socket: then when the peer reads on
// or keepalive closes the connection.
absl::Status RunStreamCall(grpc::GenericStub* stub, CallScope* scope, const StreamRequest& request,
                           const std::function<void(int64_t sent, int64_t total)>& on_sent,
                           absl::FunctionRef<absl::Status(grpc::ByteBuffer* response)> on_response);

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_STREAM_CALL_H_
