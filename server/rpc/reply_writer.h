// SPDX-License-Identifier: Apache-2.0

// What a call sends: one message after the other, and its end with the last.
#ifndef CROUT_SERVER_RPC_REPLY_WRITER_H_
#define CROUT_SERVER_RPC_REPLY_WRITER_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>

#include "grpcpp/support/byte_buffer.h"
#include "server/rpc/transfer_watch.h"

namespace crout {

// Says what gRPC is to be given, and when; the call gives it. Never more than one write is in
// flight. What gRPC was given is watched until it is gone, the end until Done(): a client that does
// not read its reply is told from one that does. Not thread-safe.
class ReplyWriter {
 public:
  using Clock = TransferWatch::Clock;
  // A reply, made when its turn comes: so that the last one can tell how long sending took.
  using Message = std::function<grpc::ByteBuffer()>;

  // What gRPC is to be given now: message(), message() and the end together, the end, or nothing.
  enum class Step { kNone, kWrite, kWriteLast, kFinish };

  // `limits` are read when a transfer begins; they outlive the writer.
  explicit ReplyWriter(const TransferLimits& limits) : limits_(limits) {}

  // To be sent after what was pushed before. No effect once closed.
  void Push(Message message);
  // Forgets what gRPC was not given yet.
  void Drop() { replies_.clear(); }
  // Nothing is pushed from now on: the end leaves with what is there.
  void Close() { closed_ = true; }
  bool closed() const { return closed_; }

  // After every change: what to do about it. May throw what a message throws when it is made; then
  // the next call makes it again.
  Step Next(Clock::time_point now);
  // gRPC's until Written(), or, with the last one, until it is done with the call.
  const grpc::ByteBuffer& message() const { return message_; }
  // The write in flight is over.
  void Written(Clock::time_point now);
  // gRPC is done with the call.
  void Done() { watch_.reset(); }

  // Whether gRPC has taken all that was pushed.
  bool empty() const { return replies_.empty() && !in_flight_; }
  // Whether gRPC has something that is not gone yet, and whether the client takes it in time.
  bool sending() const { return watch_.has_value(); }
  TransferWatch::Fault Check(Clock::time_point now) const { return watch_->Check(now); }

 private:
  const TransferLimits& limits_;
  std::deque<Message> replies_;
  grpc::ByteBuffer message_;
  size_t message_bytes_ = 0;
  std::optional<TransferWatch> watch_;  // while gRPC has some of the reply
  bool in_flight_ = false;
  bool closed_ = false;
  bool finished_ = false;  // gRPC has the end
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_REPLY_WRITER_H_
