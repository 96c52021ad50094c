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

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace crout {
inline namespace api {
namespace internal {
namespace {

using google::protobuf::FieldDescriptor;
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

// Bytes of the first character of `text`, which is not empty; 0 if it is not valid UTF-8 (RFC 3629:
// shortest form, no surrogates, at most U+10FFFF).
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < length) return 0;
  // The second byte shows overlong forms, surrogates and values above U+10FFFF.
  unsigned char low = 0x80, high = 0xbf;
  if (first == 0xe0) low = 0xa0;
  if (first == 0xed) high = 0x9f;
  if (first == 0xf0) low = 0x90;
  if (first == 0xf4) high = 0x8f;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return length;
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
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

absl::Status CheckTexts(const google::protobuf::Message& request) {
  const google::protobuf::Reflection* reflection = request.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(request, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) continue;  // No request of the contract has repeated strings.
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      absl::Status status = CheckTexts(reflection->GetMessage(request, field));
      if (!status.ok()) return status;
    } else if (field->type() == FieldDescriptor::TYPE_STRING) {
      std::string scratch;
      if (!IsUtf8(reflection->GetStringReference(request, field, &scratch))) {
        return absl::InvalidArgumentError(
            absl::StrCat("the ", field->name(), " is not valid UTF-8: encode it as UTF-8"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace api
}  // namespace crout
