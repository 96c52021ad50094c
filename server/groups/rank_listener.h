// SPDX-License-Identifier: Apache-2.0

// The server of the protocol between the daemon and the ranks and agents of a group.
#ifndef CROUT_SERVER_GROUPS_RANK_LISTENER_H_
#define CROUT_SERVER_GROUPS_RANK_LISTENER_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "crout/rank/v1/rank_service.grpc.pb.h"
#include "kernels/util/mutex.h"
#include "kernels/util/thread.h"
#include "server/groups/job_matrices.h"
#include "server/groups/rank_gate.h"
#include "server/net/connection_listener.h"

namespace crout {

// Appends the factors of a Forget to `last`, the message that is sent before it. Thousands of
// factors can be freed at once. Returns false if `last` is not a Forget or is long.
inline bool Merge(const rank::v1::GroupMessage& message, rank::v1::GroupMessage* last) {
  constexpr int kMostFactors = 10'000;  // gRPC limits the size of a message
  if (!message.has_forget() || !last->has_forget()) return false;
  if (last->forget().factors_size() >= kMostFactors) return false;
  last->mutable_forget()->mutable_factors()->MergeFrom(message.forget().factors());
  return true;
}
inline bool Merge(const rank::v1::MachineMessage&, rank::v1::MachineMessage*) { return false; }

// Sends messages on one stream. Writes run on a separate thread, because a write waits while the
// network does not work. Thread-safe.
template <class Out, class In>
class MessageStream {
 public:
  using Grpc = grpc::ServerReaderWriter<Out, In>;

  MessageStream(grpc::ServerContext* context, Grpc* stream)
      : peer_(context->peer()),
        context_(context),
        stream_(stream),
        writer_(StartThread([this] { WriteAll(); })) {}
  ~MessageStream() { Close(); }
  MessageStream(const MessageStream&) = delete;  // It owns a thread.
  MessageStream& operator=(const MessageStream&) = delete;

  // Address of the other side: "ipv4:10.0.0.1:4242", or "unix:".
  const std::string& peer() const { return peer_; }

  // Sends a message. Does nothing after the stream has ended, which the events report. Ends the
  // stream of a peer that does not read. Joins a Forget to one that waits.
  void Write(Out message) {
    constexpr size_t kMostWaiting = 1000;
    MutexLock lock(&mutex_);
    if (context_ == nullptr) return;
    if (!messages_.empty() && Merge(message, &messages_.back())) return;
    if (messages_.size() >= kMostWaiting) return context_->TryCancel();
    messages_.push_back(std::move(message));
    changed_.Signal();
  }
  // Ends the stream.
  void Cancel() {
    MutexLock lock(&mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }
  // Call it when the stream has ended and before its objects are destroyed.
  void Close() {
    {
      MutexLock lock(&mutex_);
      context_ = nullptr;
      changed_.Signal();
    }
    if (writer_.joinable()) writer_.join();
  }

 private:
  void WriteAll() {
    MutexLock lock(&mutex_);
    while (context_ != nullptr) {
      if (messages_.empty()) {
        changed_.Wait(&mutex_);
        continue;
      }
      const Out message = std::move(messages_.front());
      messages_.pop_front();
      mutex_.Unlock();
      stream_->Write(message);
      mutex_.Lock();
    }
  }

  const std::string peer_;
  Mutex mutex_;
  CondVar changed_;
  grpc::ServerContext* context_ ABSL_GUARDED_BY(mutex_);  // null after Close()
  std::deque<Out> messages_ ABSL_GUARDED_BY(mutex_);
  Grpc* const stream_;  // used by the writer
  std::thread writer_;
};

using RankStream = MessageStream<rank::v1::GroupMessage, rank::v1::RankMessage>;
using AgentStream = MessageStream<rank::v1::MachineMessage, rank::v1::AgentMessage>;

// Receives what ranks or agents send, on one thread for each stream.
template <class Stream, class Hello, class Message>
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;

  // A new stream. It is refused with the status if that is an error; no other event of the stream
  // follows.
  virtual absl::Status Joined(std::shared_ptr<Stream> stream, const Hello& hello) = 0;
  virtual void Received(const Stream& stream, const Message& message) = 0;
  // The stream has ended.
  virtual void Left(const Stream& stream) = 0;
};
using RankEvents = StreamEvents<RankStream, rank::v1::Hello, rank::v1::RankMessage>;
using AgentEvents = StreamEvents<AgentStream, rank::v1::AgentHello, rank::v1::AgentMessage>;

// The objects that a listener serves. They must outlive it.
struct RankService {
  RankEvents* ranks = nullptr;
  // For groups that others join; null for ranks that the daemon starts.
  AgentEvents* agents = nullptr;
  JobMatrices* memory = nullptr;
  const RankGate* gate = nullptr;
  size_t most_connections = 0;  // on TCP
};

// Returns the limit of a listener for this number of ranks. Each rank and each agent has one
// connection. After the network of a machine has failed, old connections remain for some seconds.
constexpr size_t MostConnections(int ranks) { return 64 + 16 * static_cast<size_t>(ranks); }

// Listens on an address until it is destroyed.
class RankListener {
 public:
  // `address`: "unix:PATH" or "HOST:PORT". UNAVAILABLE if it cannot be bound.
  static absl::StatusOr<std::unique_ptr<RankListener>> Start(const std::string& address,
                                                             const RankService& service);
  // Ends all streams and waits for their last events.
  ~RankListener();

  // The port that was bound; 1 for a Unix socket.
  int port() const { return port_; }

 private:
  class Service;

  RankListener();

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ConnectionListener> connections_;  // null for a Unix socket
  int port_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_RANK_LISTENER_H_
