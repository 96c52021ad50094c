// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/side_queues.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

absl::StatusOr<std::unique_ptr<SideQueue>> SideQueue::Create(const DeviceLimits& limits) {
  auto queue = std::unique_ptr<SideQueue>(new SideQueue());
  CROUT_ASSIGN_OR_RETURN(queue->stream_, MakeStream());
  CROUT_ASSIGN_OR_RETURN(queue->ahead_, LookAhead::CreateBorrower(queue->stream_.get(), limits));
  CROUT_ASSIGN_OR_RETURN(queue->forked_, MakeEvent());
  CROUT_ASSIGN_OR_RETURN(queue->joined_, MakeEvent());
  return queue;
}

absl::Status SideQueue::Fork(Context& context, std::span<std::byte> cublas_workspace) {
  ahead_->Borrow(context.look_ahead(), cublas_workspace);
  CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(forked_.get(), context.stream()));
  CROUT_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream_.get(), forked_.get(), 0));
  return absl::OkStatus();
}

absl::Status SideQueue::Join(Context& context) {
  CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(joined_.get(), stream_.get()));
  CROUT_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(context.stream(), joined_.get(), 0));
  return absl::OkStatus();
}

SideQueues::Taken::~Taken() {
  const MutexLock lock(&from_.mutex_);
  for (auto& queue : queues_) from_.free_.push_back(std::move(queue));
}

absl::StatusOr<std::unique_ptr<SideQueues>> SideQueues::Create(size_t count,
                                                               const DeviceLimits& limits) {
  auto queues = std::make_unique<SideQueues>();
  const MutexLock lock(&queues->mutex_);
  for (size_t k = 0; k < count; ++k) {
    CROUT_ASSIGN_OR_RETURN(auto queue, SideQueue::Create(limits));
    queues->free_.push_back(std::move(queue));
  }
  return queues;
}

SideQueues::Taken SideQueues::Take(size_t most) {
  std::vector<std::unique_ptr<SideQueue>> taken;
  const MutexLock lock(&mutex_);
  while (taken.size() < most && !free_.empty()) {
    taken.push_back(std::move(free_.back()));
    free_.pop_back();
  }
  return Taken(*this, std::move(taken));
}

}  // namespace crout::cuda
