// Cuts a header and the payloads that follow it into the messages of one call.
#ifndef CROUT_CLIENT_CPP_MESSAGE_WRITER_H_
#define CROUT_CLIENT_CPP_MESSAGE_WRITER_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/cpp/chunk_reader.h"
#include "client/cpp/wire.h"

namespace crout::client {

// One `bytes` field of the request message and what it carries.
struct PayloadField {
  int number;
  std::unique_ptr<ChunkReader> reader;
};

class MessageWriter {
 public:
  // Most payload bytes of a message: about half of what the slowest client that the server, with
  // its default limits, has patience with sends while one message arrives.
  static constexpr size_t kChunkBytes = size_t{1} << 20;
  // And of the first: a call that waits for its request_id keeps no larger one.
  static constexpr size_t kFirstChunkBytes = size_t{32} << 10;

  // `first` is the serialised first message without payload; `payloads` follow in order, and as
  // much of them as fits rides in the first message. `borrowed` counts slices given to gRPC.
  MessageWriter(std::string first, std::vector<PayloadField> payloads, BorrowCount* borrowed);

  struct Message {
    grpc::ByteBuffer buffer;
    bool last;
  };
  // Not to be called after the last message. Errors are those of reading the payload, and of
  // `while_silent`, which is called while a pipe gives nothing.
  absl::StatusOr<Message> Next(absl::FunctionRef<absl::Status()> while_silent);

  int64_t payload_bytes_produced() const { return produced_; }
  int64_t payload_bytes_total() const { return total_; }  // -1: not known

 private:
  // Makes `ahead_` the next chunk of at most `limit` bytes, empty when all payloads are done.
  absl::Status Advance(size_t limit, absl::FunctionRef<absl::Status()> while_silent);

  std::vector<grpc::Slice> message_;
  std::vector<PayloadField> payloads_;
  BorrowCount* const borrowed_;
  size_t current_ = 0;  // index into payloads_
  grpc::Slice ahead_;   // read, but not in a message yet: tells which message is the last
  bool primed_ = false;
  int64_t produced_ = 0;
  int64_t total_ = 0;
};

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_MESSAGE_WRITER_H_
