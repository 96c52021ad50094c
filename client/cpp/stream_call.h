// SPDX-License-Identifier: Apache-2.0

// Runs bidirectional streaming calls on the calling thread.
#ifndef CROUT_CLIENT_CPP_STREAM_CALL_H_
#define CROUT_CLIENT_CPP_STREAM_CALL_H_

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <google/protobuf/message.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cpp/call_scope.h"
#include "client/cpp/message_writer.h"
#include "client/cpp/shared_memory.h"
#include "crout/matrix_source.h"

namespace crout {
inline namespace api {
namespace internal {

// A request: the first message without payload, then the payloads. Every attempt opens the payloads
// again.
struct StreamRequest {
  struct Payload {
    int number;                  // field number
    const MatrixSource* source;  // must outlive the payload
  };
  std::string method;  // "/package.Service/Method"
  std::string first;   // serialized
  std::string handle;  // in `first`; empty if there is none
  std::vector<Payload> payloads;
  // Whether the matrix in the reply has the size of the last payload, as X has, unless it becomes
  // complex.
  bool reply_is_like_last = false;
};

// Makes a request of the method `name`. INVALID_ARGUMENT for a string in `first` that is not UTF-8.
absl::StatusOr<StreamRequest> RequestOf(absl::string_view name,
                                        const google::protobuf::Message& first,
                                        std::vector<StreamRequest::Payload> payloads);

// One round of a call: a request and its responses.
struct StreamRound {
  // Whether the round has more responses.
  enum class Reply { kMore, kLast };

  // Whether the client half-closes after the request. The round then lasts until the call ends.
  // Without half-close it lasts until its last response.
  bool half_close = false;
  // After the deadline the call is cancelled and ends with DEADLINE_EXCEEDED.
  absl::Time deadline = absl::InfiniteFuture();
  // Called after each message with the payload bytes sent so far and in total (-1: unknown). May be
  // empty.
  std::function<void(int64_t sent, int64_t total)> on_sent = nullptr;
  // Handles a response. `shared` is the memory in which the server may have written the matrix of
  // the reply. An error cancels the call and is returned.
  absl::FunctionRef<absl::StatusOr<Reply>(grpc::ByteBuffer* response,
                                          absl::Span<const std::byte> shared)>
      on_response;
};

// One call, with its own completion queue. One thread at a time may use it.
//
// Every function returns only when gRPC no longer refers to the payloads' memory. Usually this is
// immediate. If the call was cancelled while the server does not read from its socket, the function
// waits until the server reads or keepalive closes the connection.
class StreamCall {
 public:
  // The first Run() starts the call. All arguments must outlive the object. `scope` is closed when
  // the call ends.
  StreamCall(grpc::GenericStub* stub, SharedMemory* memory, CallScope* scope)
      : stub_(stub), memory_(memory), scope_(scope) {}
  ~StreamCall();                           // Cancels a running call.
  StreamCall(const StreamCall&) = delete;  // gRPC refers to it.
  StreamCall& operator=(const StreamCall&) = delete;

  // Runs a round: sends the whole `request` and passes each response to round.on_response. If the
  // server ends the call early, the rest is not sent and the server's status is returned.
  //
  // For a round without half-close: INTERNAL if the server ends the call with OK before the last
  // response of the round, or sends that response before it has the whole request.
  //
  // Every error ends the call, except an error of a payload before anything was sent.
  absl::Status Run(const StreamRequest& request, const StreamRound& round);

  // Half-closes the call between rounds, waits for the server's status until `deadline`, and
  // returns it.
  absl::Status Close(absl::Time deadline);

  // Whether the call has started and a round can follow.
  bool open() const { return stream_ != nullptr; }
  // Whether the call has ended.
  bool over() const { return over_; }

 private:
  enum class Tag : intptr_t { kWrite = 1, kRead, kFinish };
  static void* AsPointer(Tag tag) { return reinterpret_cast<void*>(tag); }

  // Cancels the call between rounds and discards its responses.
  void Cancel();
  // Begins a round. `writer`: null if it sends nothing.
  void Begin(const StreamRound& round, MessageWriter* writer);
  void Start(const std::string& method);
  // Handles completions until the round or the call ends.
  absl::Status Drive();
  bool RoundIsOver() const;
  void OnCompletion(void* tag, bool ok);
  void StartWrite(MessageWriter::Message message);
  void OnWritten(bool ok);
  // Handles completions while a pipe has no data. Returns an error if the wait must end, for
  // instance because the call has ended.
  absl::Status PollWhileSilent();
  absl::Status CheckDeadline() const;
  // Like PollWhileSilent, for the time before the round sends anything.
  absl::Status CheckBefore() const;
  void StartRead();
  void OnRead(bool ok);
  // Cancels the call; the round then returns `why`.
  void Abandon(absl::Status why);
  // Called once the call has finished.
  void End();
  // Waits until gRPC has released the caller's memory. Polls, so that pending writes can end.
  void AwaitReturn();

  grpc::GenericStub* const stub_;
  SharedMemory* const memory_;
  CallScope* const scope_;
  BorrowCount borrowed_ = 0;
  grpc::CompletionQueue cq_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;  // null: not started or ended
  grpc::ByteBuffer response_;
  grpc::Status status_;
  absl::Status local_error_;
  bool writing_ = false;
  bool reading_ = false;
  bool read_all_ = false;
  bool finished_ = false;
  bool over_ = false;

  // The current round.
  const StreamRound* round_ = nullptr;
  MessageWriter* writer_ = nullptr;  // null: nothing is sent
  absl::Span<const std::byte> shared_reply_;
  bool sent_all_ = false;
  bool answered_ = false;
};

// Runs a call with one round: sends `request`, passes each response to `on_response`, and returns
// the server's status or the first error of `on_response`.
absl::Status RunStreamCall(
    grpc::GenericStub* stub, SharedMemory* memory, CallScope* scope, const StreamRequest& request,
    const std::function<void(int64_t sent, int64_t total)>& on_sent,
    absl::FunctionRef<absl::Status(grpc::ByteBuffer* response, absl::Span<const std::byte> shared)>
        on_response);

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_STREAM_CALL_H_
