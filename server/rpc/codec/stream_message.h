// SPDX-License-Identifier: Apache-2.0

// Reads and writes the messages of the matrix streams as raw bytes. Their `data` fields are copied
// once, from gRPC's slices to the matrix, and never through a protobuf message.
#ifndef CROUT_SERVER_RPC_CODEC_STREAM_MESSAGE_H_
#define CROUT_SERVER_RPC_CODEC_STREAM_MESSAGE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "server/engine/upload/shared_region.h"

namespace crout {

// A run of payload bytes inside a message, or in shared memory, which may be memory of a GPU.
struct DataSegment {
  int field = 0;  // 2: data, 3: rhs_data, 4: x0_data
  std::span<const std::byte> bytes;
  // The region that contains the bytes. Null for bytes inside the message.
  SharedRegions::Region region = nullptr;
};

// Finds a region by its identifier (SharedRegions::Find).
using FindRegion = std::function<absl::StatusOr<SharedRegions::Region>(std::string_view id)>;

// A streamed request: `header` (field 1, a message), the bytes fields 2 to 4, the ranges of shared
// memory (fields 15 to 17) that replace them, and `shared_reply` (field 14), all optional. Movable.
// Owns the memory that its segments refer to.
class StreamMessage {
 public:
  StreamMessage(StreamMessage&& other) noexcept;
  StreamMessage& operator=(StreamMessage&&) = delete;  // would release buffer_ before slices_

  // Parses a message. INVALID_ARGUMENT if it is malformed, or if a range exceeds its region. Errors
  // of `find_region` are returned; if it is null, a range is malformed. Skips unknown fields, as
  // protobuf does.
  static absl::StatusOr<StreamMessage> Parse(const grpc::ByteBuffer& buffer,
                                             const FindRegion& find_region = nullptr);

  bool has_header() const { return header_.has_value(); }
  // Parses the header into `message`; INVALID_ARGUMENT if it is malformed.
  absl::Status ParseHeader(google::protobuf::Message* message) const;

  // The payload in the order of the message.
  const std::vector<DataSegment>& segments() const { return segments_; }
  // Number of payload bytes in shared memory.
  size_t shared_bytes() const;
  // Name of the GPU whose memory has the first bytes of the payload; "" if there is none.
  std::string device() const;
  // Memory for the data of the reply, or nullopt if the message contains no `shared_reply`.
  const std::optional<SharedBytes>& shared_reply() const { return shared_reply_; }

  // Size of the whole message in bytes, without shared memory.
  size_t size() const { return size_; }
  // Copies the payload out of gRPC's buffers, which may be far larger than the message. Bytes in
  // shared memory stay there. Use it for a message that is kept for a long time.
  void Detach();

 private:
  StreamMessage() = default;

  size_t size_ = 0;
  // Must outlive slices_: the last reference to gRPC's receive memory must be held by a ByteBuffer.
  // If gRPC's quota is full, releasing that memory schedules gRPC work. Destroying a ByteBuffer
  // prepares for this work; destroying a Slice (in gRPC 1.51) does not and crashes the daemon.
  grpc::ByteBuffer buffer_;
  std::vector<grpc::Slice> slices_;
  std::optional<std::string> header_;
  std::vector<DataSegment> segments_;
  std::optional<SharedBytes> shared_reply_;
};

// Size limit of a header and of a unary request. Real clients send far less.
inline constexpr size_t kMaxRequestBytes = size_t{64} << 10;

// Parses `buffer` into `message` and drops unknown fields. INVALID_ARGUMENT if it is malformed or
// larger than kMaxRequestBytes.
absl::Status ParseMessage(const grpc::ByteBuffer& buffer, google::protobuf::Message* message);

grpc::ByteBuffer Serialize(const google::protobuf::Message& message);

// Serializes `message` and appends `data` as the bytes field `field` without copying it. gRPC holds
// `owner`, which must keep the bytes alive, until it has sent them.
grpc::ByteBuffer SerializeWithData(const google::protobuf::Message& message, int field,
                                   std::span<const std::byte> data,
                                   std::shared_ptr<const void> owner);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_STREAM_MESSAGE_H_
