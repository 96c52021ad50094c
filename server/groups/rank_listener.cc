// SPDX-License-Identifier: Apache-2.0

#include "server/groups/rank_listener.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace crout {

using rank::v1::GroupMessage;
using rank::v1::RankMessage;

void RankStream::Write(const GroupMessage& message) {
  MutexLock lock(&mutex_);
  if (stream_ != nullptr) stream_->Write(message);
}

void RankStream::Cancel() {
  MutexLock lock(&mutex_);
  if (context_ != nullptr) context_->TryCancel();
}

void RankStream::Close() {
  MutexLock lock(&mutex_);
  context_ = nullptr;
  stream_ = nullptr;
}

class RankListener::Service final : public rank::v1::RankService::Service {
 public:
  explicit Service(RankEvents& events) : events_(events) {}

  grpc::Status Join(grpc::ServerContext* context, RankStream::Grpc* grpc_stream) override {
    RankMessage message;
    if (!grpc_stream->Read(&message) || !message.has_hello()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "the first message is not a hello"};
    }
    const auto stream = std::make_shared<RankStream>(context, grpc_stream);
    const absl::Status joined = events_.Joined(stream, message.hello());
    if (joined.ok()) {
      while (grpc_stream->Read(&message)) events_.Received(*stream, message);
      events_.Left(*stream);
    }
    stream->Close();
    return {static_cast<grpc::StatusCode>(joined.code()), std::string(joined.message())};
  }

 private:
  RankEvents& events_;
};

RankListener::RankListener() = default;

absl::StatusOr<std::unique_ptr<RankListener>> RankListener::Start(const std::string& socket,
                                                                  RankEvents& events) {
  std::unique_ptr<RankListener> listener(new RankListener);
  listener->service_ = std::make_unique<Service>(events);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("unix:", socket), grpc::InsecureServerCredentials());
  builder.RegisterService(listener->service_.get());
  listener->server_ = builder.BuildAndStart();
  if (listener->server_ == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", socket, " for ranks"));
  }
  return listener;
}

RankListener::~RankListener() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

}  // namespace crout
