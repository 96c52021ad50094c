// SPDX-License-Identifier: Apache-2.0

// Sends a call's messages in order and the final status with the last message.
#ifndef CROUT_SERVER_RPC_STREAM_REPLY_WRITER_H_
#define CROUT_SERVER_RPC_STREAM_REPLY_WRITER_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>

#include "grpcpp/support/byte_buffer.h"
#include "server/net/transfer_watch.h"

namespace crout {

// Decides what to send next; the call passes it to gRPC. At most one write is in flight. Each write
// is watched until gRPC has completed it, and the end of the call until Done(), so that a client
// that does not read its reply is detected. Not thread-safe.
class ReplyWriter {
 public:
  using Clock = TransferWatch::Clock;
  // Creates a reply. It is called just before the reply is sent, so that the last reply can report
  // how long sending took.
  using Message = std::function<grpc::ByteBuffer()>;

  // The next operation: nothing, write message(), write message() together with the end of the
  // call, or only end the call.
  enum class Step { kNone, kWrite, kWriteLast, kFinish };

  // `limits` are read when a transfer begins; they must outlive the writer.
  explicit ReplyWriter(const TransferLimits& limits) : limits_(limits) {}

  // Queues a message behind those already queued. No effect after Close().
  void Push(Message message);
  // Discards the queued messages that were not passed to gRPC yet.
  void Drop() { replies_.clear(); }
  // Ends the queue: the end of the call is sent with the last queued message, or alone if the queue
  // is empty.
  void Close() { closed_ = true; }
  bool closed() const { return closed_; }

  // Returns the next operation. Call it after every change. Throws the exception of a Message that
  // fails; the next call then retries that message.
  Step Next(Clock::time_point now);
  // Returns the message to write. gRPC uses it until Written(), and the last message until gRPC is
  // done with the call.
  const grpc::ByteBuffer& message() const { return message_; }
  // Call when the write in flight has completed.
  void Written(Clock::time_point now);
  // Call when gRPC is done with the call.
  void Done() { watch_.reset(); }

  // Whether no message is queued and no write is in flight.
  bool empty() const { return replies_.empty() && !in_flight_; }
  // Whether a transfer is being watched. Check() requires it and reports a client that is too slow.
  bool sending() const { return watch_.has_value(); }
  TransferWatch::Fault Check(Clock::time_point now) const { return watch_->Check(now); }

 private:
  const TransferLimits& limits_;
  std::deque<Message> replies_;
  grpc::ByteBuffer message_;
  size_t message_bytes_ = 0;
  std::optional<TransferWatch> watch_;  // while gRPC is sending the reply
  bool in_flight_ = false;
  bool closed_ = false;
  bool finished_ = false;  // Next() has returned the end of the call
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STREAM_REPLY_WRITER_H_
