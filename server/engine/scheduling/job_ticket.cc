// SPDX-License-Identifier: Apache-2.0

#include "server/engine/scheduling/job_ticket.h"

#include <utility>

namespace crout {

double JobTicket::EndWork(Clock::time_point now) {
  --working_;
  if (working_ > 0 || !wasting_since_) return 0;
  return std::chrono::duration<double>(now - *std::exchange(wasting_since_, std::nullopt)).count();
}

void JobTicket::Abandon(Clock::time_point now) {
  if (job_ != nullptr && scheduler_->Remove(job_.get())) job_.reset();
  if (working_ > 0 && !wasting_since_) wasting_since_ = now;
}

}  // namespace crout
