// SPDX-License-Identifier: Apache-2.0

// What a call receives: the messages of its stream, and the runs of payload bytes inside them.
#ifndef CROUT_SERVER_RPC_REQUEST_READER_H_
#define CROUT_SERVER_RPC_REQUEST_READER_H_

#include <cstddef>
#include <deque>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/rpc/codec/wire.h"
#include "server/rpc/transfer_watch.h"

namespace crout {

// Says where gRPC is to read to, and when; the call has it read. One read at most is in flight, and
// messages are read ahead by one, so that gRPC receives the next while this one is copied. While a
// transfer is watched, the first wait for the header or an upload, the client has to keep within
// the limits whenever the reader waits for it. Not thread-safe.
class RequestReader {
 public:
  using Clock = TransferWatch::Clock;

  // `limits` are read when a transfer begins; they outlive the reader.
  explicit RequestReader(const TransferLimits& limits) : limits_(limits) {}

  // Where the next message is to go, gRPC's until EndRead(). Null where none is to be read now: a
  // read is in flight, the stream is at its end, or there is enough to consume.
  grpc::ByteBuffer* StartRead();
  // The read is over; what it brought.
  grpc::ByteBuffer EndRead();
  // It was the last: there was no message any more.
  void HalfClose() { half_closed_ = true; }
  bool half_closed() const { return half_closed_; }

  // Takes a message in, behind those that are there. INVALID_ARGUMENT if it is not one. The result
  // stays while there is something of the message, or of those before it, to consume.
  absl::StatusOr<StreamMessage*> Add(const grpc::ByteBuffer& buffer, Clock::time_point now);

  // What is to be consumed next: the rest of a run of payload bytes, which may be empty. None where
  // all that came is consumed. An empty one before a header that was not taken.
  std::optional<DataSegment> Next();
  // So many bytes of Next() are consumed.
  void Consume(size_t bytes);

  // The first message that is not consumed; null if there is none.
  StreamMessage* NextMessage();
  // The header of the first message that is there has been read.
  void TakeHeader() { header_taken_ = true; }
  // Whether what Next() gives belongs to a message with a header that was not.
  bool AtHeader() const { return inbox_.front().has_header() && !header_taken_; }

  // A transfer begins; what is there to consume counts as its first bytes.
  void StartWatch(Clock::time_point now) { StartWatch(now, limits_); }
  // With limits of its own.
  void StartWatch(Clock::time_point now, const TransferLimits& limits);
  void StopWatch() { watch_.reset(); }
  // After every change: whose turn it is, as of now.
  void UpdateTurn(Clock::time_point now);
  // DEADLINE_EXCEEDED (reason UPLOAD_IDLE or UPLOAD_SLOW) if the client does not keep the limits.
  absl::Status Check(Clock::time_point now) const;

 private:
  const TransferLimits& limits_;
  grpc::ByteBuffer incoming_;  // gRPC's while a read is in flight
  bool reading_ = false;
  bool half_closed_ = false;
  std::deque<StreamMessage> inbox_;
  size_t segment_ = 0;         // of inbox_.front(), next to consume
  size_t offset_ = 0;          // within it
  bool header_taken_ = false;  // that of inbox_.front()
  std::optional<TransferWatch> watch_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_REQUEST_READER_H_
