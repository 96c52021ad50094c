// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/stream_message.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "crout/v1/matrix.pb.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::ConcatenatingInputStream;
using google::protobuf::io::ZeroCopyInputStream;

constexpr int kHeaderField = 1;
constexpr int kFirstDataField = 2;
constexpr int kLastDataField = 4;
constexpr int kSharedReplyField = 14;
constexpr int kFirstSharedField = 15;  // `shared_data`, the counterpart of field 2
constexpr int kLastSharedField = kFirstSharedField + kLastDataField - kFirstDataField;
// Largest size of a SharedRange: an identifier and two numbers.
constexpr uint32_t kMaxRangeBytes = 64;

// Limit of data fields in one message. Real clients send far fewer. The limit bounds the memory for
// segments, so that a message cannot use much more memory than its size.
constexpr size_t kMaxFields = 64;
// A message may have kFewSlices slices, plus one per kSliceBytes, before it is copied into one
// slice. gRPC normally makes one slice for each frame of 16 KiB.
constexpr size_t kFewSlices = 256;
constexpr size_t kSliceBytes = 1024;

absl::Status TooLarge(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the ", what, " is larger than ", kMaxRequestBytes >> 10, " KiB"));
}

absl::Status Malformed() {
  return absl::InvalidArgumentError(
      "message is not a valid protocol buffer of the stream's request type: check that client and "
      "server use the same version of crout.v1");
}

// Appends segments for the next `length` bytes, which point into the slices. Returns false if the
// input ends early or `segments` would have more than `max_segments` elements.
bool ReadSegments(CodedInputStream* in, int field, uint32_t length, size_t max_segments,
                  std::vector<DataSegment>* segments) {
  while (length > 0) {
    const void* data = nullptr;
    int size = 0;
    if (!in->GetDirectBufferPointer(&data, &size)) return false;
    const auto take = std::min<uint32_t>(length, static_cast<uint32_t>(size));
    if (segments->size() == max_segments) return false;
    segments->push_back({field, {static_cast<const std::byte*>(data), take}, nullptr});
    if (!in->Skip(static_cast<int>(take))) return false;
    length -= take;
  }
  return true;
}

absl::StatusOr<SharedBytes> ReadRange(CodedInputStream* in, uint32_t length,
                                      const FindRegion& find_region) {
  std::string encoded;
  v1::SharedRange range;
  if (find_region == nullptr || length > kMaxRangeBytes ||
      !in->ReadString(&encoded, static_cast<int>(length)) || !range.ParseFromString(encoded)) {
    return Malformed();
  }
  CROUT_ASSIGN_OR_RETURN(SharedRegions::Region region, find_region(range.region()));
  const std::span<std::byte> all = region->bytes();
  if (range.offset() > all.size() || range.size() > all.size() - range.offset()) {
    return absl::InvalidArgumentError(absl::StrCat("a range of shared memory has offset ",
                                                   range.offset(), " and size ", range.size(),
                                                   "; its region has ", all.size(), " bytes"));
  }
  return SharedBytes{all.subspan(range.offset(), range.size()), std::move(region)};
}

bool IsSharedField(int field) { return field >= kSharedReplyField && field <= kLastSharedField; }

}  // namespace

absl::StatusOr<StreamMessage> StreamMessage::Parse(const grpc::ByteBuffer& buffer,
                                                   const FindRegion& find_region) {
  StreamMessage message;
  message.size_ = buffer.Length();
  message.buffer_ = buffer;
  if (!buffer.Dump(&message.slices_).ok()) return Malformed();
  // Copy a message of many small slices into one slice. A small slice costs more than its bytes.
  if (message.slices_.size() > kFewSlices + message.size_ / kSliceBytes) {
    grpc::Slice whole;
    if (!buffer.DumpToSingleSlice(&whole).ok()) return Malformed();
    message.slices_.assign(1, std::move(whole));
    message.buffer_.Clear();
  }
  std::deque<ArrayInputStream> arrays;  // a deque, because they cannot be moved
  std::vector<ZeroCopyInputStream*> streams;
  for (const grpc::Slice& slice : message.slices_) {
    arrays.emplace_back(slice.begin(), static_cast<int>(slice.size()));
    streams.push_back(&arrays.back());
  }
  ConcatenatingInputStream joined(streams.data(), static_cast<int>(streams.size()));
  CodedInputStream in(&joined);
  // Each slice boundary and each field can start one segment.
  const size_t max_segments = message.slices_.size() + kMaxFields;

  while (const uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    const bool is_bytes =
        WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    const bool is_known =
        (field >= kHeaderField && field <= kLastDataField) || IsSharedField(field);
    if (!is_bytes || !is_known) {
      if (!WireFormatLite::SkipField(&in, tag)) return Malformed();
      continue;
    }
    uint32_t length = 0;
    if (!in.ReadVarint32(&length)) return Malformed();
    if (field == kHeaderField) {
      // Protobuf merges repeated occurrences of a message field. Concatenating their bytes is
      // equivalent.
      std::string bytes;
      if (!message.header_) message.header_.emplace();
      if (length > kMaxRequestBytes - message.header_->size()) return TooLarge("header");
      if (!in.ReadString(&bytes, static_cast<int>(length))) return Malformed();
      message.header_->append(bytes);
    } else if (IsSharedField(field)) {
      CROUT_ASSIGN_OR_RETURN(SharedBytes shared, ReadRange(&in, length, find_region));
      if (field == kSharedReplyField) {
        message.shared_reply_ = {shared.bytes, std::move(shared.region)};
        continue;
      }
      if (message.segments_.size() == max_segments) return Malformed();
      message.segments_.push_back(
          {field - kFirstSharedField + kFirstDataField, shared.bytes, std::move(shared.region)});
    } else if (!ReadSegments(&in, field, length, max_segments, &message.segments_)) {
      return Malformed();
    }
  }
  if (!in.ConsumedEntireMessage()) return Malformed();
  return message;
}

StreamMessage::StreamMessage(StreamMessage&& other) noexcept
    : size_(other.size_),
      slices_(std::move(other.slices_)),
      header_(std::move(other.header_)),
      segments_(std::move(other.segments_)),
      shared_reply_(std::move(other.shared_reply_)) {
  buffer_.Swap(&other.buffer_);  // ByteBuffer has no move, and a copy adds references to the slices
}

size_t StreamMessage::shared_bytes() const {
  size_t bytes = 0;
  for (const DataSegment& segment : segments_) {
    if (segment.region != nullptr) bytes += segment.bytes.size();
  }
  return bytes;
}

std::string StreamMessage::device() const {
  if (segments_.empty() || segments_.front().region == nullptr) return "";
  const Device* const device = segments_.front().region->device();
  return device == nullptr ? "" : device->info().name;
}

void StreamMessage::Detach() {
  std::vector<grpc::Slice> slices;
  slices.reserve(segments_.size());  // a short slice stores its bytes inline, so it must not move
  for (DataSegment& segment : segments_) {
    if (segment.region != nullptr) continue;
    const grpc::Slice& copy = slices.emplace_back(segment.bytes.data(), segment.bytes.size());
    segment.bytes = {reinterpret_cast<const std::byte*>(copy.begin()), copy.size()};
  }
  slices_ = std::move(slices);
  buffer_.Clear();
}

absl::Status StreamMessage::ParseHeader(google::protobuf::Message* message) const {
  if (!message->ParseFromString(header_.value_or(""))) return Malformed();
  return absl::OkStatus();
}

absl::Status ParseMessage(const grpc::ByteBuffer& buffer, google::protobuf::Message* message) {
  if (buffer.Length() > kMaxRequestBytes) return TooLarge("request");
  grpc::ByteBuffer copy(buffer);
  grpc::ProtoBufferReader reader(&copy);
  if (!reader.status().ok() || !message->ParseFromZeroCopyStream(&reader)) return Malformed();
  message->DiscardUnknownFields();
  return absl::OkStatus();
}

grpc::ByteBuffer Serialize(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

grpc::ByteBuffer SerializeWithData(const google::protobuf::Message& message, int field,
                                   std::span<const std::byte> data,
                                   std::shared_ptr<const void> owner) {
  std::string head = message.SerializeAsString();
  uint8_t prefix[16];
  uint8_t* end = CodedOutputStream::WriteTagToArray(
      WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED), prefix);
  end = CodedOutputStream::WriteVarint64ToArray(data.size(), end);
  head.append(reinterpret_cast<const char*>(prefix), static_cast<size_t>(end - prefix));
  using Owner = std::shared_ptr<const void>;
  auto holder = std::make_unique<Owner>(std::move(owner));
  const grpc::Slice payload(
      const_cast<std::byte*>(data.data()), data.size(),
      [](void* held) { delete static_cast<Owner*>(held); }, holder.get());
  (void)holder.release();  // now owned by the slice
  const grpc::Slice slices[2] = {grpc::Slice(head), payload};
  return {slices, 2};
}

}  // namespace crout
