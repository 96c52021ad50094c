// SPDX-License-Identifier: Apache-2.0

// Parts of the client that handle protobuf's wire format directly, so that matrix bytes are never
// copied into or out of a message object:
// - Upload: key and length of a `bytes` field are written here, followed by a slice that refers to
//   the caller's memory.
// - Download: the bytes of a `bytes` field are passed on from the memory in which gRPC received
//   them.
// - Strings: a request is checked before it is sent.
//
// All rely only on the encoding (https://protobuf.dev/programming-guides/encoding): a message is a
// sequence of fields in any order. A length-delimited field is its key, (number << 3) | 2, then its
// length as a varint, then its bytes.
#ifndef CROUT_CLIENT_CPP_WIRE_H_
#define CROUT_CLIENT_CPP_WIRE_H_

#include <google/protobuf/message.h>
#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace crout {
inline namespace api {
namespace internal {

// Number of slices that refer to a caller's memory and that gRPC still holds. Must outlive these
// slices. At 0 the memory may change or be freed.
using BorrowCount = std::atomic<int>;

// Makes a slice that refers to `bytes` and is counted in *borrowed until gRPC releases it.
grpc::Slice BorrowedSlice(absl::Span<const std::byte> bytes, BorrowCount* borrowed);

// From the number of a `bytes` field of a request to the number of the SharedRange in its place.
inline constexpr int kSharedOffset = 13;
inline constexpr int kSharedReplyField = 14;

// Appends field `number` with `payload` as its value to the slices of a message.
void AppendBytesField(int number, grpc::Slice payload, std::vector<grpc::Slice>* message);

// Parses `buffer` into `message` but skips the `bytes` field `number`. INTERNAL if malformed.
absl::Status ParseWithoutBytes(grpc::ByteBuffer* buffer, int number,
                               google::protobuf::MessageLite* message);

// Calls `consume` with the pieces of the `bytes` field `number` in order. INTERNAL if malformed;
// otherwise the first error of `consume`.
absl::Status ForEachBytesPiece(
    grpc::ByteBuffer* buffer, int number,
    absl::FunctionRef<absl::Status(absl::Span<const std::byte>)> consume);

// INVALID_ARGUMENT, naming the field, if a `string` of `request` or of a nested message is not
// UTF-8. proto3 requires UTF-8: a server refuses the whole message without a reason.
absl::Status CheckTexts(const google::protobuf::Message& request);

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_WIRE_H_
