// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace crout::client {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

uint32_t BytesKey(int number) {
  return WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

absl::Status Malformed() { return absl::InternalError("the server sent a malformed message"); }

// Passes the next `length` bytes of `input` to `consume` without copying them.
absl::Status ConsumePieces(CodedInputStream* input, uint32_t length,
                           absl::FunctionRef<absl::Status(absl::Span<const std::byte>)> consume) {
  while (length > 0) {
    const void* data = nullptr;
    int available = 0;
    if (!input->GetDirectBufferPointer(&data, &available)) return Malformed();
    const int taken = static_cast<int>(std::min<uint32_t>(length, available));
    const auto status = consume({static_cast<const std::byte*>(data), static_cast<size_t>(taken)});
    if (!status.ok()) return status;
    if (!input->Skip(taken)) return Malformed();
    length -= taken;
  }
  return absl::OkStatus();
}

}  // namespace

grpc::Slice BorrowedSlice(absl::Span<const std::byte> bytes, BorrowCount* borrowed) {
  borrowed->fetch_add(1, std::memory_order_relaxed);
  // gRPC only reads from slices that it sends.
  return grpc::Slice(
      const_cast<std::byte*>(bytes.data()), bytes.size(),
      [](void* count) {
        static_cast<BorrowCount*>(count)->fetch_sub(1, std::memory_order_release);
      },
      borrowed);
}

void AppendBytesField(int number, grpc::Slice payload, std::vector<grpc::Slice>* message) {
  uint8_t head[10];  // two varints of 32 bits
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(BytesKey(number), head);
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(payload.size()), end);
  message->emplace_back(head, static_cast<size_t>(end - head));
  message->push_back(std::move(payload));
}

absl::Status ParseWithoutBytes(grpc::ByteBuffer* buffer, int number,
                               google::protobuf::MessageLite* message) {
  std::string rest;
  {
    grpc::ProtoBufferReader reader(buffer);
    CodedInputStream input(&reader);
    google::protobuf::io::StringOutputStream rest_stream(&rest);
    CodedOutputStream output(&rest_stream);
    while (const uint32_t key = input.ReadTag()) {
      uint32_t length = 0;
      const bool ok = key == BytesKey(number)
                          ? input.ReadVarint32(&length) && input.Skip(static_cast<int>(length))
                          : WireFormatLite::SkipField(&input, key, &output);
      if (!ok) return Malformed();
    }
    if (!input.ConsumedEntireMessage()) return Malformed();
  }
  return message->ParseFromString(rest) ? absl::OkStatus() : Malformed();
}

absl::Status ForEachBytesPiece(
    grpc::ByteBuffer* buffer, int number,
    absl::FunctionRef<absl::Status(absl::Span<const std::byte>)> consume) {
  grpc::ProtoBufferReader reader(buffer);
  CodedInputStream input(&reader);
  while (const uint32_t key = input.ReadTag()) {
    if (key != BytesKey(number)) {
      if (!WireFormatLite::SkipField(&input, key)) return Malformed();
      continue;
    }
    uint32_t length = 0;
    if (!input.ReadVarint32(&length)) return Malformed();
    const absl::Status status = ConsumePieces(&input, length, consume);
    if (!status.ok()) return status;
  }
  return input.ConsumedEntireMessage() ? absl::OkStatus() : Malformed();
}

}  // namespace crout::client
