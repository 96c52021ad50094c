// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/stream_call.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/field_names.h"
#include "client/cpp/payload.h"
#include "client/cpp/replicas.h"
#include "client/cpp/wire.h"
#include "crout/v1/factorization_service.grpc.pb.h"

namespace crout {
inline namespace api {
namespace internal {
namespace {

absl::StatusOr<std::vector<PayloadField>> OpenAll(
    const std::vector<StreamRequest::Payload>& payloads) {
  std::vector<PayloadField> fields;
  for (const StreamRequest::Payload& payload : payloads) {
    auto reader = payload.source->payload().Open();
    if (!reader.ok()) return reader.status();
    fields.push_back({payload.number, *std::move(reader)});
  }
  return fields;
}

// Lends shared memory for the payloads and for the reply.
Loan Lend(SharedMemory* memory, const StreamRequest& request, std::vector<PayloadField>& payloads) {
  std::vector<SharedMemory::Wanted> wanted;
  for (size_t i = 0; i < payloads.size(); ++i) {
    wanted.push_back({payloads[i].reader->size(), request.payloads[i].source->payload().bytes});
  }
  int64_t reply = 0;
  if (request.reply_is_like_last && request.payloads.back().source->payload().spec.has_dense()) {
    reply = payloads.back().reader->size();
  }
  Loan loan = memory->Borrow(wanted, reply);
  for (size_t i = 0; i < payloads.size(); ++i) payloads[i].place = loan.payloads[i];
  return loan;
}

// Appends the field `shared_reply` to the first message.
void AppendReply(const Loan::Place& place, std::string* first) {
  std::vector<grpc::Slice> field;
  AppendBytesField(kSharedReplyField,
                   grpc::Slice(place.region->EncodeRange(place.offset, place.size)), &field);
  for (const grpc::Slice& part : field) {
    first->append(reinterpret_cast<const char*>(part.begin()), part.size());
  }
}

std::chrono::system_clock::time_point OneMillisecondFromNow() {
  return std::chrono::system_clock::now() + std::chrono::milliseconds(1);
}

}  // namespace

absl::StatusOr<StreamRequest> RequestOf(absl::string_view name,
                                        const google::protobuf::Message& first,
                                        std::vector<StreamRequest::Payload> payloads) {
  if (absl::Status texts = CheckTexts(first); !texts.ok()) return texts;
  return StreamRequest{absl::StrCat("/", v1::FactorizationService::service_full_name(), "/", name),
                       first.SerializeAsString(), HandleIn(first), std::move(payloads)};
}

StreamCall::~StreamCall() {
  if (stream_ != nullptr) Cancel();
  AwaitReturn();
  cq_.Shutdown();
  void* tag;
  bool ok;
  while (cq_.Next(&tag, &ok)) {
  }
}

void StreamCall::Cancel() {
  const auto ignore = [](grpc::ByteBuffer*,
                         absl::Span<const std::byte>) -> absl::StatusOr<StreamRound::Reply> {
    return StreamRound::Reply::kMore;
  };
  const StreamRound last{.half_close = true, .on_response = ignore};
  Begin(last, nullptr);
  Abandon(absl::CancelledError("the call was left"));
  Drive().IgnoreError();
}

absl::Status StreamCall::Run(const StreamRequest& request, const StreamRound& round) {
  absl::StatusOr<std::vector<PayloadField>> payloads = OpenAll(request.payloads);
  if (!payloads.ok()) return payloads.status();
  const Loan loan = Lend(memory_, request, *payloads);
  std::string first = request.first;
  absl::Status status;
  {
    if (loan.reply.region != nullptr) AppendReply(loan.reply, &first);
    MessageWriter writer(std::move(first), *std::move(payloads), &borrowed_);
    Begin(round, &writer);
    if (loan.reply.region != nullptr) {
      shared_reply_ = loan.reply.region->memory().subspan(loan.reply.offset, loan.reply.size);
    }
    absl::StatusOr<MessageWriter::Message> message = writer.Next([this] { return CheckBefore(); });
    if (!message.ok()) return message.status();
    if (stream_ == nullptr) Start(request.method);
    StartWrite(*std::move(message));
    StartRead();
    status = Drive();
  }
  AwaitReturn();
  if (status.ok()) memory_->Return(loan);
  return status;
}

absl::Status StreamCall::Close(absl::Time deadline) {
  if (stream_ == nullptr) return absl::OkStatus();
  const auto refuse = [](grpc::ByteBuffer*,
                         absl::Span<const std::byte>) -> absl::StatusOr<StreamRound::Reply> {
    return absl::InternalError("the server sent more than was asked for");
  };
  const StreamRound last{.half_close = true, .deadline = deadline, .on_response = refuse};
  Begin(last, nullptr);
  writing_ = true;
  stream_->WritesDone(AsPointer(Tag::kWrite));
  StartRead();
  return Drive();
}

void StreamCall::Begin(const StreamRound& round, MessageWriter* writer) {
  round_ = &round;
  writer_ = writer;
  sent_all_ = false;
  answered_ = false;
  shared_reply_ = {};
}

void StreamCall::Start(const std::string& method) {
  // Corked: metadata, first message and, for a small request, the half-close go out in one write.
  scope_->context()->set_initial_metadata_corked(true);
  stream_ = stub_->PrepareCall(scope_->context(), method, &cq_);
  stream_->StartCall(nullptr);
}

bool StreamCall::RoundIsOver() const {
  if (writing_) return false;
  return finished_ || (answered_ && local_error_.ok());
}

absl::Status StreamCall::Drive() {
  absl::Time deadline = round_->deadline;
  while (!RoundIsOver()) {
    void* tag = nullptr;
    bool ok = false;
    if (cq_.AsyncNext(&tag, &ok, absl::ToChronoTime(deadline)) ==
        grpc::CompletionQueue::GOT_EVENT) {
      OnCompletion(tag, ok);
    } else {
      deadline = absl::InfiniteFuture();  // The cancelled call still has to end.
      Abandon(absl::DeadlineExceededError("the server did not answer in time"));
    }
  }
  if (!finished_) return absl::OkStatus();
  End();
  if (!local_error_.ok()) return local_error_;
  if (status_.ok() && !round_->half_close) {
    return absl::InternalError("the server ended the call before its reply");
  }
  return ServerStatus(status_);
}

void StreamCall::OnCompletion(void* tag, bool ok) {
  switch (static_cast<Tag>(reinterpret_cast<intptr_t>(tag))) {
    case Tag::kWrite:
      return OnWritten(ok);
    case Tag::kRead:
      return OnRead(ok);
    case Tag::kFinish:
      finished_ = true;
  }
}

void StreamCall::StartWrite(MessageWriter::Message message) {
  writing_ = true;
  sent_all_ = message.last;
  grpc::WriteOptions options;
  if (message.last && round_->half_close) options.set_last_message();
  stream_->Write(message.buffer, options, AsPointer(Tag::kWrite));
}

void StreamCall::OnWritten(bool ok) {
  writing_ = false;
  // A failed write means that the call has ended; the next read fails and leads to the status.
  if (!ok || !local_error_.ok() || writer_ == nullptr) return;
  if (round_->on_sent) {
    round_->on_sent(writer_->payload_bytes_produced(), writer_->payload_bytes_total());
  }
  if (sent_all_ || read_all_) return;
  absl::StatusOr<MessageWriter::Message> message =
      writer_->Next([this] { return PollWhileSilent(); });
  if (read_all_ || !local_error_.ok()) return;
  message.ok() ? StartWrite(*std::move(message)) : Abandon(message.status());
}

absl::Status StreamCall::CheckDeadline() const {
  if (absl::Now() < round_->deadline) return absl::OkStatus();
  return absl::DeadlineExceededError("the deadline passed while the matrix was read");
}

absl::Status StreamCall::CheckBefore() const {
  absl::Status status = CheckDeadline();
  return status.ok() ? scope_->Check() : status;
}

absl::Status StreamCall::PollWhileSilent() {
  void* tag = nullptr;
  bool ok = false;
  const auto at_once = OneMillisecondFromNow();
  while (!finished_ && cq_.AsyncNext(&tag, &ok, at_once) == grpc::CompletionQueue::GOT_EVENT) {
    OnCompletion(tag, ok);
  }
  if (read_all_) return absl::CancelledError("the call has ended");
  return local_error_.ok() ? CheckDeadline() : local_error_;
}

void StreamCall::StartRead() {
  if (reading_ || read_all_) return;
  reading_ = true;
  response_.Clear();
  stream_->Read(&response_, AsPointer(Tag::kRead));
}

void StreamCall::OnRead(bool ok) {
  reading_ = false;
  if (!ok) {
    // Finish before pending writes end: a write that the server does not read ends only with the
    // call.
    read_all_ = true;
    return stream_->Finish(&status_, AsPointer(Tag::kFinish));
  }
  if (local_error_.ok()) {
    const absl::StatusOr<StreamRound::Reply> reply = round_->on_response(&response_, shared_reply_);
    if (!reply.ok()) {
      Abandon(reply.status());
    } else if (*reply == StreamRound::Reply::kLast) {
      if (sent_all_)
        answered_ = true;
      else
        Abandon(absl::InternalError("the server replied before it had the whole request"));
    }
  }
  if (!answered_) StartRead();  // Responses after the last one of a round belong to the next round.
}

void StreamCall::Abandon(absl::Status why) {
  local_error_ = std::move(why);
  scope_->context()->TryCancel();
  StartRead();  // The failing read leads to Finish.
}

void StreamCall::End() {
  over_ = true;
  stream_.reset();
  scope_->Close();  // The call itself holds references until here.
}

void StreamCall::AwaitReturn() {
  void* tag;
  bool ok;
  while (borrowed_.load(std::memory_order_acquire) > 0) {
    cq_.AsyncNext(&tag, &ok, OneMillisecondFromNow());
  }
}

absl::Status RunStreamCall(
    grpc::GenericStub* stub, SharedMemory* memory, CallScope* scope, const StreamRequest& request,
    const std::function<void(int64_t, int64_t)>& on_sent,
    absl::FunctionRef<absl::Status(grpc::ByteBuffer*, absl::Span<const std::byte>)> on_response) {
  const auto more = [&](grpc::ByteBuffer* response,
                        absl::Span<const std::byte> shared) -> absl::StatusOr<StreamRound::Reply> {
    if (absl::Status status = on_response(response, shared); !status.ok()) return status;
    return StreamRound::Reply::kMore;
  };
  StreamCall call(stub, memory, scope);
  return call.Run(request, {.half_close = true, .on_sent = on_sent, .on_response = more});
}

}  // namespace internal
}  // namespace api
}  // namespace crout
