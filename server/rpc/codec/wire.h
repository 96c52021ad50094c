// SPDX-License-Identifier: Apache-2.0

// Messages of the matrix streams, read and written as raw bytes: their `data` fields are copied
// once, from gRPC's slices to where the matrix belongs, instead of through a protobuf message.
#ifndef CROUT_SERVER_RPC_CODEC_WIRE_H_
#define CROUT_SERVER_RPC_CODEC_WIRE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace crout {

// A run of payload bytes inside a message.
struct DataSegment {
  int field = 0;  // 2: data, 3: rhs_data, 4: x0_data
  std::span<const std::byte> bytes;
};

// A streamed request: `header` (field 1, a message) and bytes fields 2 to 4, each optional.
// Movable; owns what its segments point into.
class StreamMessage {
 public:
  StreamMessage(StreamMessage&& other) noexcept;
  StreamMessage& operator=(StreamMessage&&) = delete;  // would let go of buffer_ before slices_

  // INVALID_ARGUMENT if the bytes are not such a message. Unknown fields are skipped, as protobuf
  // does.
  static absl::StatusOr<StreamMessage> Parse(const grpc::ByteBuffer& buffer);

  bool has_header() const { return header_.has_value(); }
  // Parses the header into `message`; INVALID_ARGUMENT if it is malformed.
  absl::Status ParseHeader(google::protobuf::Message* message) const;

  // In the order of the wire.
  const std::vector<DataSegment>& segments() const { return segments_; }

  // Bytes of the message, all of them.
  size_t size() const { return size_; }
  // For a message that is kept for long: copies the payload out of gRPC's buffers, which may be far
  // larger than what a message has of them.
  void Detach();

 private:
  StreamMessage() = default;

  size_t size_ = 0;
  // Outlives the slices: the last reference to memory that gRPC received into has to be a buffer's.
  // Where its quota is full, that memory's end schedules work of gRPC's, for which destroying a
  // buffer prepares, and destroying a slice (in gRPC 1.51) does not: it would end the daemon.
  grpc::ByteBuffer buffer_;
  std::vector<grpc::Slice> slices_;
  std::optional<std::string> header_;
  std::vector<DataSegment> segments_;
};

// The most bytes of a header, or of a request that is one message: far more than any client writes.
inline constexpr size_t kMaxRequestBytes = size_t{64} << 10;

// INVALID_ARGUMENT if `buffer` is not such a message, or has more than kMaxRequestBytes. Unknown
// fields are dropped.
absl::Status ParseMessage(const grpc::ByteBuffer& buffer, google::protobuf::Message* message);

grpc::ByteBuffer Serialize(const google::protobuf::Message& message);

// As Serialize, followed by `data` as the bytes field `field`, without copying: gRPC holds `owner`,
// which keeps the bytes alive, until it has sent them.
grpc::ByteBuffer SerializeWithData(const google::protobuf::Message& message, int field,
                                   std::span<const std::byte> data,
                                   std::shared_ptr<const void> owner);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_WIRE_H_
