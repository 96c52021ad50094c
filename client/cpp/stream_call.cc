#include "client/cpp/stream_call.h"

#include <grpcpp/completion_queue.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "crout/status.h"

namespace crout::client {
namespace {

// One call. The owner's thread alone drives it: completions come from a queue of its own.
class StreamCall {
 public:
  StreamCall(CallScope* scope, grpc::CompletionQueue* cq, MessageWriter* writer,
             const std::function<void(int64_t, int64_t)>& on_sent,
             absl::FunctionRef<absl::Status(grpc::ByteBuffer*)> on_response)
      : scope_(scope),
        context_(scope->context()),
        cq_(cq),
        writer_(writer),
        on_sent_(on_sent),
        on_response_(on_response) {}

  absl::Status Run(grpc::GenericStub* stub, const std::string& method) {
    absl::StatusOr<MessageWriter::Message> message =
        writer_->Next([this] { return scope_->Check(); });
    if (!message.ok()) return message.status();
    // Metadata, first message and, in small calls, the half-close leave in one write.
    context_->set_initial_metadata_corked(true);
    stream_ = stub->PrepareCall(context_, method, cq_);
    stream_->StartCall(nullptr);
    StartWrite(*std::move(message));
    StartRead();
    while (writing_ || !finished_) {
      void* tag = nullptr;
      bool ok = false;
      cq_->Next(&tag, &ok);
      OnCompletion(tag, ok);
    }
    return local_error_.ok() ? ToAbslStatus(status_) : local_error_;
  }

 private:
  enum class Tag : intptr_t { kWrite = 1, kRead, kFinish };
  static void* AsPointer(Tag tag) { return reinterpret_cast<void*>(tag); }

  void OnCompletion(void* tag, bool ok) {
    switch (static_cast<Tag>(reinterpret_cast<intptr_t>(tag))) {
      case Tag::kWrite:
        return OnWritten(ok);
      case Tag::kRead:
        return OnRead(ok);
      case Tag::kFinish:
        finished_ = true;
    }
  }

  void StartWrite(MessageWriter::Message message) {
    writing_ = true;
    last_written_ = message.last;
    grpc::WriteOptions options;
    if (message.last) options.set_last_message();
    stream_->Write(message.buffer, options, AsPointer(Tag::kWrite));
  }

  void OnWritten(bool ok) {
    writing_ = false;
    // A failed write means that the call is over; the read that fails next leads to the status.
    if (!ok || !local_error_.ok()) return;
    if (on_sent_) on_sent_(writer_->payload_bytes_produced(), writer_->payload_bytes_total());
    if (last_written_ || read_all_) return;
    absl::StatusOr<MessageWriter::Message> message =
        writer_->Next([this] { return WhileSilent(); });
    if (read_all_ || !local_error_.ok()) return;
    message.ok() ? StartWrite(*std::move(message)) : Abandon(message.status());
  }

  // Nothing is being written meanwhile, but the call may end. An error ends the wait.
  absl::Status WhileSilent() {
    void* tag = nullptr;
    bool ok = false;
    const auto at_once = std::chrono::system_clock::now() + std::chrono::milliseconds(1);
    while (!finished_ && cq_->AsyncNext(&tag, &ok, at_once) == grpc::CompletionQueue::GOT_EVENT) {
      OnCompletion(tag, ok);
    }
    return read_all_ ? absl::CancelledError("the call has ended") : local_error_;
  }

  void StartRead() {
    response_.Clear();
    stream_->Read(&response_, AsPointer(Tag::kRead));
  }

  void OnRead(bool ok) {
    if (!ok) {
      // At once: a write that the server no longer wants only ends with the call.
      read_all_ = true;
      return stream_->Finish(&status_, AsPointer(Tag::kFinish));
    }
    if (local_error_.ok()) {
      if (absl::Status status = on_response_(&response_); !status.ok()) Abandon(std::move(status));
    }
    StartRead();
  }

  void Abandon(absl::Status why) {
    local_error_ = std::move(why);
    context_->TryCancel();
  }

  CallScope* const scope_;
  grpc::ClientContext* const context_;
  grpc::CompletionQueue* const cq_;
  MessageWriter* const writer_;
  const std::function<void(int64_t, int64_t)>& on_sent_;
  const absl::FunctionRef<absl::Status(grpc::ByteBuffer*)> on_response_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  bool writing_ = false;
  bool last_written_ = false;
  bool read_all_ = false;
  bool finished_ = false;
  absl::Status local_error_;
};

absl::StatusOr<std::vector<PayloadField>> OpenAll(
    const std::vector<StreamRequest::Payload>& payloads) {
  std::vector<PayloadField> fields;
  for (const StreamRequest::Payload& payload : payloads) {
    auto reader = payload.source->Open();
    if (!reader.ok()) return reader.status();
    fields.push_back({payload.number, *std::move(reader)});
  }
  return fields;
}

// Polls, so that writes under way can end, until gRPC has let go of the caller's memory.
void AwaitReturn(const BorrowCount& borrowed, grpc::CompletionQueue* cq) {
  void* tag;
  bool ok;
  while (borrowed.load(std::memory_order_acquire) > 0) {
    cq->AsyncNext(&tag, &ok, std::chrono::system_clock::now() + std::chrono::milliseconds(1));
  }
  cq->Shutdown();
  while (cq->Next(&tag, &ok)) {
  }
}

}  // namespace

absl::Status RunStreamCall(grpc::GenericStub* stub, CallScope* scope, const StreamRequest& request,
                           const std::function<void(int64_t, int64_t)>& on_sent,
                           absl::FunctionRef<absl::Status(grpc::ByteBuffer*)> on_response) {
  auto payloads = OpenAll(request.payloads);
  if (!payloads.ok()) return payloads.status();
  BorrowCount borrowed = 0;
  grpc::CompletionQueue cq;
  absl::Status status;
  {
    MessageWriter writer(request.first, *std::move(payloads), &borrowed);
    status = StreamCall(scope, &cq, &writer, on_sent, on_response).Run(stub, request.method);
  }
  scope->Close();  // The call itself holds references until then.
  AwaitReturn(borrowed, &cq);
  return status;
}

}  // namespace crout::client
