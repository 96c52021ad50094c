// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/message_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace crout {
inline namespace api {
namespace internal {

MessageWriter::MessageWriter(std::string first, std::vector<PayloadField> payloads,
                             BorrowCount* borrowed)
    : payloads_(std::move(payloads)), borrowed_(borrowed) {
  message_.emplace_back(first.data(), first.size());
  for (const PayloadField& payload : payloads_) {
    const int64_t size = payload.reader->size();
    total_ = size < 0 || total_ < 0 ? -1 : total_ + size;
  }
}

absl::Status MessageWriter::Advance(size_t limit, absl::FunctionRef<absl::Status()> while_silent) {
  ahead_ = Field();
  while (current_ < payloads_.size()) {
    PayloadField& payload = payloads_[current_];
    if (payload.place.region != nullptr) {
      absl::StatusOr<Field> range = NextRange(while_silent);
      if (!range.ok()) return range.status();
      ahead_ = *std::move(range);
      if (ahead_.payload_bytes > 0) return absl::OkStatus();
      const bool sent = payload.place.filled;
      payload.place = {};  // Bytes that do not fit, of a file that has grown, follow in messages.
      if (sent) ++current_;
      continue;
    }
    absl::StatusOr<grpc::Slice> chunk = payload.reader->Next(limit, borrowed_, while_silent);
    if (!chunk.ok()) return chunk.status();
    if (chunk->size() > 0) {
      const auto bytes = static_cast<int64_t>(chunk->size());
      ahead_ = {payload.number, *std::move(chunk), bytes, false};
      return absl::OkStatus();
    }
    ++current_;
  }
  return absl::OkStatus();
}

absl::StatusOr<MessageWriter::Field> MessageWriter::NextRange(
    absl::FunctionRef<absl::Status()> while_silent) {
  PayloadField& payload = payloads_[current_];
  Loan::Place& place = payload.place;
  size_t count = place.filled ? place.size : 0;
  const size_t limit = std::min(kRangeBytes, place.size);
  while (!place.filled && count < limit) {
    absl::StatusOr<grpc::Slice> chunk =
        payload.reader->Next(std::min(kChunkBytes, limit - count), borrowed_, while_silent);
    if (!chunk.ok()) return chunk.status();
    if (chunk->size() == 0) break;
    std::byte* const to = place.region->memory().data() + place.offset + count;
    std::memcpy(to, chunk->begin(), chunk->size());
    count += chunk->size();
  }
  if (count == 0) return Field();
  const std::string range = place.region->EncodeRange(place.offset, count);
  place.offset += count;
  place.size -= count;
  return Field{payload.number + kSharedOffset, grpc::Slice(range), static_cast<int64_t>(count),
               true};
}

absl::StatusOr<MessageWriter::Message> MessageWriter::Next(
    absl::FunctionRef<absl::Status()> while_silent) {
  size_t max_bytes = kChunkBytes;
  if (!primed_) {
    primed_ = true;
    max_bytes = kFirstChunkBytes;
    if (absl::Status status = Advance(max_bytes, while_silent); !status.ok()) return status;
  }
  size_t filled = 0;
  bool ends_with_range = false;
  while (ahead_.payload_bytes > 0 && filled + ahead_.value.size() <= max_bytes) {
    // A range of its own message lets the server copy it while the next one is written.
    if (ends_with_range && ahead_.is_range) break;
    filled += ahead_.value.size();
    produced_ += ahead_.payload_bytes;
    ends_with_range = ahead_.is_range;
    AppendBytesField(ahead_.number, std::move(ahead_.value), &message_);
    if (absl::Status status = Advance(kChunkBytes, while_silent); !status.ok()) return status;
  }
  Message result{grpc::ByteBuffer(message_.data(), message_.size()), ahead_.payload_bytes == 0};
  message_.clear();
  return result;
}

}  // namespace internal
}  // namespace api
}  // namespace crout
