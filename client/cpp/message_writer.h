// SPDX-License-Identifier: Apache-2.0

// Splits a header and its payloads into the messages of one call.
#ifndef CROUT_CLIENT_CPP_MESSAGE_WRITER_H_
#define CROUT_CLIENT_CPP_MESSAGE_WRITER_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/shared_memory.h"
#include "client/cpp/wire.h"

namespace crout {
inline namespace api {
namespace internal {

// One pass over the bytes of a payload.
class ChunkReader {
 public:
  virtual ~ChunkReader() = default;

  // Total bytes; -1 if unknown (a pipe).
  virtual int64_t size() const = 0;

  // Returns the next 1 to `limit` bytes; an empty slice at the end. Slices may refer to memory of
  // the source; `borrowed` counts these. While a pipe has no data, `while_silent` is called
  // repeatedly; its error is returned.
  virtual absl::StatusOr<grpc::Slice> Next(size_t limit, BorrowCount* borrowed,
                                           absl::FunctionRef<absl::Status()> while_silent) = 0;
};

// One `bytes` field of the request message and what it carries.
struct PayloadField {
  int number;  // field number
  std::unique_ptr<ChunkReader> reader;
  // Memory for the bytes, which are then sent as ranges of it; without a region: in messages.
  Loan::Place place = {};
};

class MessageWriter {
 public:
  // Largest payload of a message: about half of the bytes that a client at the server's default
  // upload_min_rate sends within upload_idle_timeout.
  static constexpr size_t kChunkBytes = size_t{1} << 20;
  // Largest payload of the first message. Half of the server's limit for the first message of a
  // call that waits for another call with its request_id.
  static constexpr size_t kFirstChunkBytes = size_t{32} << 10;
  // Bytes of shared memory in one range. The server copies them while the next ones are written.
  static constexpr size_t kRangeBytes = size_t{8} << 20;

  // `first` is the serialized first message without payload. `payloads` follow in order, starting
  // in the first message. `borrowed` counts slices passed to gRPC that refer to a caller's memory.
  MessageWriter(std::string first, std::vector<PayloadField> payloads, BorrowCount* borrowed);

  struct Message {
    grpc::ByteBuffer buffer;
    bool last;
  };
  // Returns the next message. Must not be called after the last one. Calls `while_silent` while a
  // pipe has no data. Returns its errors and the errors of reading the payload.
  absl::StatusOr<Message> Next(absl::FunctionRef<absl::Status()> while_silent);

  int64_t payload_bytes_produced() const { return produced_; }
  int64_t payload_bytes_total() const { return total_; }  // -1: unknown

 private:
  // A field of a message: a chunk of a payload, or a range of shared memory.
  struct Field {
    int number = 0;
    grpc::Slice value;
    int64_t payload_bytes = 0;
    bool is_range = false;
  };
  // Sets `ahead_` to the next field, with a chunk of at most `limit` bytes; empty at the end of all
  // payloads.
  absl::Status Advance(size_t limit, absl::FunctionRef<absl::Status()> while_silent);
  // Copies the next bytes of the current payload to its place, and returns their range. Empty at
  // the end of the payload, and of the place.
  absl::StatusOr<Field> NextRange(absl::FunctionRef<absl::Status()> while_silent);

  std::vector<grpc::Slice> message_;  // the next message
  std::vector<PayloadField> payloads_;
  BorrowCount* const borrowed_;
  size_t current_ = 0;  // index into payloads_
  Field ahead_;         // read ahead of the message; empty after the last message
  bool primed_ = false;
  int64_t produced_ = 0;
  int64_t total_ = 0;
};

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_MESSAGE_WRITER_H_
