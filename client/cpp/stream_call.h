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
#include "client/cpp/call_scope.h"
#include "client/cpp/chunk_reader.h"
#include "client/cpp/message_writer.h"
#include "crout/matrix_source.h"

namespace crout::client {

// What is sent: the first message without payload, then the payloads, of which each is opened when
// the round starts.
struct StreamRequest {
  struct Payload {
    using Open = std::function<absl::StatusOr<std::unique_ptr<ChunkReader>>()>;

    // `source` outlives it.
    Payload(int number, const MatrixSource* source)
        : number(number),
          open([source] { return source->Open(); }),
          repeatable([source] { return source->repeatable(); }) {}
    // `open` starts a pass over the same bytes each time.
    Payload(int number, Open open)
        : number(number), open(std::move(open)), repeatable([] { return true; }) {}

    int number;  // of the field
    Open open;
    std::function<bool()> repeatable;  // as of MatrixSource
  };
  std::string method;  // "/package.Service/Method"
  std::string first;
  std::vector<Payload> payloads;
};

// A request of the method `name`. INVALID_ARGUMENT for a text in `first` that cannot be sent.
absl::StatusOr<StreamRequest> RequestOf(absl::string_view name,
                                        const google::protobuf::Message& first,
                                        std::vector<StreamRequest::Payload> payloads);

// What a round of a call is made of.
struct StreamRound {
  // Whether more responses of this round come.
  enum class Reply { kMore, kLast };

  // Whether the end of the request is the end of what this side sends. Then the round goes on until
  // the call ends, else until the last response of the round.
  bool half_close = false;
  // Then the call is cancelled, and ends with DEADLINE_EXCEEDED.
  absl::Time deadline = absl::InfiniteFuture();
  // Told how many payload bytes have been sent after each message; may be empty.
  std::function<void(int64_t sent, int64_t total)> on_sent = nullptr;
  // An error cancels the call and is returned.
  absl::FunctionRef<absl::StatusOr<Reply>(grpc::ByteBuffer* response)> on_response;
};

// One call. Of one thread at a time, which drives it: completions come from a queue of its own.
//
// Every function returns when gRPC holds no reference to the payloads' memory any more. That is at
// once, unless the call was cancelled while the peer does not read from its socket: then when the
// peer reads on or keepalive closes the connection.
class StreamCall {
 public:
  // Starts with the first round. Both must outlive the call; its end closes `scope`.
  StreamCall(grpc::GenericStub* stub, CallScope* scope) : stub_(stub), scope_(scope) {}
  ~StreamCall();                           // Cancels the call, unless it is over.
  StreamCall(const StreamCall&) = delete;  // gRPC refers to it.
  StreamCall& operator=(const StreamCall&) = delete;

  // Sends all of `request` while handing each response to round.on_response. A server that ends the
  // call early ends it with its own status, whatever was still to be sent. INTERNAL where it does
  // so with OK before the last response of a round that leaves the call open, or sends that
  // response before it has the request. Every error ends the call, but one of the payloads before
  // the first of it is sent.
  absl::Status Run(const StreamRequest& request, const StreamRound& round);

  // Ends the call, between rounds, in order: waits for the server's status until `deadline`.
  absl::Status Close(absl::Time deadline);

  // It has started, and a round can follow.
  bool open() const { return stream_ != nullptr; }
  // It has ended.
  bool over() const { return over_; }

 private:
  enum class Tag : intptr_t { kWrite = 1, kRead, kFinish };
  static void* AsPointer(Tag tag) { return reinterpret_cast<void*>(tag); }

  // Between rounds: nobody is told what comes.
  void Cancel();
  void Begin(const StreamRound& round, MessageWriter* writer);
  void Start(const std::string& method);
  // Handles completions until the round or the call is at its end.
  absl::Status Drive();
  bool RoundIsOver() const;
  void OnCompletion(void* tag, bool ok);
  void StartWrite(MessageWriter::Message message);
  void OnWritten(bool ok);
  // Nothing is being written meanwhile, but the call may end. An error ends the wait.
  absl::Status WhileSilent();
  absl::Status CheckDeadline() const;
  // As long as nothing has been sent.
  absl::Status CheckBefore() const;
  void StartRead();
  void OnRead(bool ok);
  void Abandon(absl::Status why);
  // Once the call has finished.
  void End();
  // Polls, so that writes under way can end, until gRPC has let go of the caller's memory.
  void AwaitReturn();

  grpc::GenericStub* const stub_;
  CallScope* const scope_;
  BorrowCount borrowed_ = 0;
  grpc::CompletionQueue cq_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;  // null: not started, or over
  grpc::ByteBuffer response_;
  grpc::Status status_;
  absl::Status local_error_;
  bool writing_ = false;
  bool reading_ = false;
  bool read_all_ = false;
  bool finished_ = false;
  bool over_ = false;

  // Of the round that runs.
  const StreamRound* round_ = nullptr;
  MessageWriter* writer_ = nullptr;  // null: nothing is sent
  bool sent_all_ = false;
  bool answered_ = false;
};

// A call of one round: sends everything while handing each response to `on_response`, until the
// server's status.
absl::Status RunStreamCall(grpc::GenericStub* stub, CallScope* scope, const StreamRequest& request,
                           const std::function<void(int64_t sent, int64_t total)>& on_sent,
                           absl::FunctionRef<absl::Status(grpc::ByteBuffer* response)> on_response);

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_STREAM_CALL_H_
