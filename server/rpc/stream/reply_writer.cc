// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/stream/reply_writer.h"

#include <utility>

namespace crout {

void ReplyWriter::Push(Message message) {
  if (!closed_) replies_.push_back(std::move(message));
}

ReplyWriter::Step ReplyWriter::Next(Clock::time_point now) {
  if (in_flight_ || finished_) return Step::kNone;
  const bool last = closed_ && replies_.size() <= 1;
  if (replies_.empty() && !last) {
    watch_.reset();  // A later reply is a new transfer.
    return Step::kNone;
  }
  if (!watch_) watch_.emplace(limits_, now);
  watch_->StartPeerTurn(now);
  if (replies_.empty()) {
    finished_ = true;
    return Step::kFinish;
  }
  message_ = replies_.front()();  // may throw std::bad_alloc; nothing has changed then
  message_bytes_ = message_.Length();
  replies_.pop_front();
  finished_ = last;
  in_flight_ = !last;
  return last ? Step::kWriteLast : Step::kWrite;
}

void ReplyWriter::Written(Clock::time_point now) {
  in_flight_ = false;
  watch_->Moved(message_bytes_, now);
  watch_->EndPeerTurn(now);
  message_.Clear();  // The message's bytes stay charged until it is cleared.
}

}  // namespace crout
