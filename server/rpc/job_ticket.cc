#include "server/rpc/job_ticket.h"

#include <utility>

#include "kernels/util/status_macros.h"

namespace crout {

absl::Status JobTicket::Submit(DeviceScheduler& scheduler, std::shared_ptr<Job> job) {
  CROUT_RETURN_IF_ERROR(scheduler.Submit(job));
  scheduler_ = &scheduler;
  job_ = std::move(job);
  return absl::OkStatus();
}

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
