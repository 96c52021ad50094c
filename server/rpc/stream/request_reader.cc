// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/stream/request_reader.h"

#include <utility>

#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

size_t PayloadBytes(const StreamMessage& message) {
  size_t bytes = 0;
  for (const DataSegment& segment : message.segments()) bytes += segment.bytes.size();
  return bytes;
}

}  // namespace

grpc::ByteBuffer* RequestReader::StartRead() {
  constexpr size_t kMaxInbox = 2;
  if (reading_ || half_closed_ || inbox_.size() >= kMaxInbox) return nullptr;
  reading_ = true;
  return &incoming_;
}

grpc::ByteBuffer RequestReader::EndRead() {
  reading_ = false;
  grpc::ByteBuffer buffer;
  buffer.Swap(&incoming_);
  return buffer;
}

absl::StatusOr<StreamMessage*> RequestReader::Add(const grpc::ByteBuffer& buffer,
                                                  Clock::time_point now) {
  CROUT_ASSIGN_OR_RETURN(StreamMessage message, StreamMessage::Parse(buffer, find_region_));
  // Only payload bytes count: a client that sends empty messages is idle.
  if (watch_) watch_->Moved(PayloadBytes(message), now);
  if (message.shared_bytes() > 0) used_shared_memory_ = true;
  inbox_.push_back(std::move(message));
  return &inbox_.back();
}

std::optional<DataSegment> RequestReader::Next() {
  for (; !inbox_.empty(); inbox_.pop_front(), segment_ = 0, header_read_ = false) {
    const std::vector<DataSegment>& segments = inbox_.front().segments();
    if (segment_ == segments.size()) {
      if (AtHeader()) return DataSegment();
      continue;
    }
    const DataSegment& segment = segments[segment_];
    return DataSegment{segment.field, segment.bytes.subspan(offset_), segment.region};
  }
  return std::nullopt;
}

void RequestReader::Consume(size_t bytes) {
  offset_ += bytes;
  if (offset_ < inbox_.front().segments()[segment_].bytes.size()) return;
  ++segment_;
  offset_ = 0;
}

StreamMessage* RequestReader::NextMessage() {
  // A message with a header stays until MarkHeaderRead(), even if it has no payload.
  while (!inbox_.empty() && segment_ == inbox_.front().segments().size() && !AtHeader()) {
    inbox_.pop_front();
    segment_ = 0;
    header_read_ = false;
  }
  return inbox_.empty() ? nullptr : &inbox_.front();
}

void RequestReader::StartWatch(Clock::time_point now, const TransferLimits& limits) {
  watch_.emplace(limits, now);
  for (const StreamMessage& message : inbox_) watch_->Moved(PayloadBytes(message), now);
}

void RequestReader::UpdateTurn(Clock::time_point now) {
  if (!watch_) return;
  if (reading_ && inbox_.empty()) {
    watch_->StartPeerTurn(now);
  } else {
    watch_->EndPeerTurn(now);
  }
}

absl::Status RequestReader::Check(Clock::time_point now) const {
  switch (watch_ ? watch_->Check(now) : TransferWatch::Fault::kNone) {
    case TransferWatch::Fault::kNone:
      break;
    case TransferWatch::Fault::kIdle:
      return WithReason(
          absl::DeadlineExceededError(
              "no payload arrived within the server's --upload-idle-timeout: send the "
              "matrix without pausing"),
          kReasonUploadIdle);
    case TransferWatch::Fault::kSlow:
      return WithReason(
          absl::DeadlineExceededError("the payload arrives more slowly than the server's "
                                      "--upload-min-rate: send it over a faster connection"),
          kReasonUploadSlow);
    case TransferWatch::Fault::kLong:
      return WithReason(
          absl::DeadlineExceededError(
              "the upload took longer than the server's limit for an upload (--upload-max-time): "
              "send it over a faster connection, or in smaller matrices"),
          kReasonUploadSlow);
  }
  return absl::OkStatus();
}

}  // namespace crout
