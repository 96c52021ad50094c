// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/message_writer.h"

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
  ahead_ = grpc::Slice();
  while (current_ < payloads_.size()) {
    absl::StatusOr<grpc::Slice> chunk =
        payloads_[current_].reader->Next(limit, borrowed_, while_silent);
    if (!chunk.ok()) return chunk.status();
    ahead_ = *std::move(chunk);
    if (ahead_.size() > 0) return absl::OkStatus();
    ++current_;
  }
  return absl::OkStatus();
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
  while (ahead_.size() > 0 && filled + ahead_.size() <= max_bytes) {
    filled += ahead_.size();
    const int number = payloads_[current_].number;
    AppendBytesField(number, std::move(ahead_), &message_);
    if (absl::Status status = Advance(kChunkBytes, while_silent); !status.ok()) return status;
  }
  produced_ += static_cast<int64_t>(filled);
  Message result{grpc::ByteBuffer(message_.data(), message_.size()), ahead_.size() == 0};
  message_.clear();
  return result;
}

}  // namespace internal
}  // namespace api
}  // namespace crout
