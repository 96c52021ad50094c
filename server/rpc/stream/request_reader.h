// SPDX-License-Identifier: Apache-2.0

// Receives the messages of a call's stream and yields the runs of payload bytes in them.
#ifndef CROUT_SERVER_RPC_STREAM_REQUEST_READER_H_
#define CROUT_SERVER_RPC_STREAM_REQUEST_READER_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/net/transfer_watch.h"
#include "server/rpc/codec/stream_message.h"

namespace crout {

// Provides the buffer for the next read; the call starts the read. At most one read is in flight.
// The reader reads ahead by one message, so that gRPC receives the next message while the current
// one is copied. A watched transfer is the wait for the header or an upload: the client must keep
// the transfer limits while the reader waits for it. Not thread-safe.
class RequestReader {
 public:
  using Clock = TransferWatch::Clock;

  // `limits` are read when a transfer begins; they must outlive the reader. Add() calls
  // `find_region` for the shared memory of a message (StreamMessage::Parse).
  explicit RequestReader(const TransferLimits& limits, FindRegion find_region = nullptr)
      : limits_(limits), find_region_(std::move(find_region)) {}

  // Returns the buffer for the next message, which gRPC uses until EndRead(). Returns null if a
  // read is in flight, the stream has ended, or two messages are waiting to be consumed.
  grpc::ByteBuffer* StartRead();
  // Ends the read and returns the received message.
  grpc::ByteBuffer EndRead();
  // Records that the client has half-closed the stream: no more messages follow.
  void HalfClose() { half_closed_ = true; }
  bool half_closed() const { return half_closed_; }
  // Whether a message had payload bytes in shared memory.
  bool has_used_shared_memory() const { return used_shared_memory_; }

  // Parses a message and queues it. Errors are those of StreamMessage::Parse(). The
  // pointer is valid until this message and all earlier ones are consumed.
  absl::StatusOr<StreamMessage*> Add(const grpc::ByteBuffer& buffer, Clock::time_point now);

  // Returns the rest of the next run of payload bytes, which may be empty, or nullopt if everything
  // received is consumed. Returns an empty run for a message that has no payload left but a header
  // that was not read.
  std::optional<DataSegment> Next();
  // Consumes `bytes` bytes of the run that Next() returns.
  void Consume(size_t bytes);

  // Returns the first message that is not consumed, or null.
  StreamMessage* NextMessage();
  // Marks the header of the first queued message as read.
  void MarkHeaderRead() { header_read_ = true; }
  // Whether the first queued message has a header that was not read. Requires a queued message.
  bool AtHeader() const { return inbox_.front().has_header() && !header_read_; }

  // Starts watching a transfer. The payload of the queued messages counts as its first bytes.
  void StartWatch(Clock::time_point now) { StartWatch(now, limits_); }
  // Uses `limits` instead of the limits of the constructor.
  void StartWatch(Clock::time_point now, const TransferLimits& limits);
  void StopWatch() { watch_.reset(); }
  // Counts time against the client while the reader waits for it, and stops counting otherwise.
  // Call it after every change.
  void UpdateTurn(Clock::time_point now);
  // DEADLINE_EXCEEDED (reason UPLOAD_IDLE or UPLOAD_SLOW) if the client violates the limits.
  absl::Status Check(Clock::time_point now) const;

 private:
  const TransferLimits& limits_;
  const FindRegion find_region_;
  grpc::ByteBuffer incoming_;  // used by gRPC while a read is in flight
  bool reading_ = false;
  bool half_closed_ = false;
  bool used_shared_memory_ = false;
  std::deque<StreamMessage> inbox_;
  size_t segment_ = 0;        // index in inbox_.front() of the segment to consume next
  size_t offset_ = 0;         // position of the first unconsumed byte in that segment
  bool header_read_ = false;  // the header of inbox_.front()
  std::optional<TransferWatch> watch_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STREAM_REQUEST_READER_H_
