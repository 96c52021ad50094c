// SPDX-License-Identifier: Apache-2.0

#include "server/groups/rank_listener.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace crout {
namespace {

using rank::v1::AgentMessage;
using rank::v1::MachineMessage;
using rank::v1::RankMessage;

constexpr size_t kCopyBytes = size_t{1} << 20;

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

absl::Status CannotListen(const std::string& address, absl::string_view reason) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address, " for ranks: ", reason,
                   ". Choose an address of this machine that no other process uses"));
}

}  // namespace

class RankListener::Service final : public rank::v1::RankService::Service {
 public:
  explicit Service(const crout::RankService& service) : service_(service) {}

  grpc::Status Join(grpc::ServerContext* context, RankStream::Grpc* stream) override {
    return Serve<RankStream, RankMessage>(context, stream, *service_.ranks);
  }

  grpc::Status Attend(grpc::ServerContext* context, AgentStream::Grpc* stream) override {
    if (service_.agents == nullptr) {
      return {grpc::StatusCode::FAILED_PRECONDITION, "the daemon starts the ranks of this group"};
    }
    return Serve<AgentStream, AgentMessage>(context, stream, *service_.agents);
  }

  grpc::Status Read(grpc::ServerContext* context, const rank::v1::ReadRequest* request,
                    grpc::ServerWriter<rank::v1::Bytes>* writer) override {
    absl::Status status = Admit(*context);
    if (!status.ok()) return ToGrpc(status);
    auto copy = service_.memory->Start(request->access(), JobMatrices::Direction::kToRank);
    status = copy.status();
    rank::v1::Bytes bytes;
    while (status.ok() && copy->bytes_left() > 0) {
      bytes.clear_data();
      status = copy->Read(kCopyBytes, bytes.mutable_data());
      if (status.ok() && !writer->Write(bytes)) break;
    }
    return ToGrpc(status);
  }

  grpc::Status Write(grpc::ServerContext* context,
                     grpc::ServerReader<rank::v1::WriteMessage>* reader,
                     rank::v1::WriteReply* /*reply*/) override {
    absl::Status status = Admit(*context);
    if (!status.ok()) return ToGrpc(status);
    rank::v1::WriteMessage message;
    if (!reader->Read(&message) || !message.has_access()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "the first message has no access"};
    }
    auto copy = service_.memory->Start(message.access(), JobMatrices::Direction::kFromRank);
    status = copy.status();
    while (status.ok() && reader->Read(&message)) status = copy->Write(message.bytes().data());
    if (status.ok() && copy->bytes_left() > 0) {
      status = absl::InvalidArgumentError(
          absl::StrCat("the part has ", copy->bytes_left(), " bytes more than were sent"));
    }
    return ToGrpc(status);
  }

 private:
  absl::Status Admit(const grpc::ServerContext& context) const {
    return service_.gate == nullptr ? absl::OkStatus() : service_.gate->Admit(context);
  }

  // Reads the stream of a rank or of an agent until it ends, and answers its heartbeats.
  template <class Stream, class Message, class Events>
  grpc::Status Serve(grpc::ServerContext* context, typename Stream::Grpc* grpc_stream,
                     Events& events) {
    absl::Status status = Admit(*context);
    if (!status.ok()) return ToGrpc(status);
    Message message;
    if (!grpc_stream->Read(&message) || !message.has_hello()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "the first message is not a hello"};
    }
    const auto stream = std::make_shared<Stream>(context, grpc_stream);
    status = events.Joined(stream, message.hello());
    if (status.ok()) {
      while (grpc_stream->Read(&message)) {
        // Credentials can be withdrawn or expire.
        status = Admit(*context);
        if (!status.ok()) break;
        if (message.has_heartbeat()) stream->Write(HeartbeatFor(*stream));
        events.Received(*stream, message);
      }
      events.Left(*stream);
    }
    stream->Close();
    return ToGrpc(status);
  }
  template <class Out, class In>
  static Out HeartbeatFor(const MessageStream<Out, In>&) {
    Out message;
    message.mutable_heartbeat();
    return message;
  }

  const crout::RankService service_;
};

RankListener::RankListener() = default;

absl::StatusOr<std::unique_ptr<RankListener>> RankListener::Start(const std::string& address,
                                                                  const RankService& service) {
  std::unique_ptr<RankListener> listener(new RankListener);
  listener->service_ = std::make_unique<Service>(service);
  grpc::ServerBuilder builder;
  std::vector<std::unique_ptr<ConnectionListener::Acceptor>> acceptors;
  if (absl::StartsWith(address, "unix:")) {
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &listener->port_);
  } else {
    auto connections = ConnectionListener::Bind(address, service.most_connections);
    if (!connections.ok()) return CannotListen(address, connections.status().message());
    listener->connections_ = *std::move(connections);
    listener->port_ = listener->connections_->port();
    acceptors.push_back(builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        service.gate->credentials()));
  }
  builder.RegisterService(listener->service_.get());
  // Calls of machines that vanished end.
  constexpr int kPingMs = 10'000;
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingMs);
  // Bounds the threads that callers can occupy.
  constexpr int kMostThreads = 8192;
  grpc::ResourceQuota quota("ranks");
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
  listener->server_ = builder.BuildAndStart();
  if (listener->server_ == nullptr) return CannotListen(address, "gRPC does not start");
  if (listener->connections_ != nullptr) listener->connections_->Start(std::move(acceptors));
  return listener;
}

RankListener::~RankListener() {
  if (connections_ != nullptr) connections_->Stop();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

}  // namespace crout
