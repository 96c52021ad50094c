// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/side_lanes.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

absl::StatusOr<std::unique_ptr<SideLane>> SideLane::Create(const DeviceLimits& limits) {
  auto lane = std::unique_ptr<SideLane>(new SideLane());
  CROUT_ASSIGN_OR_RETURN(lane->stream_, MakeStream());
  CROUT_ASSIGN_OR_RETURN(lane->ahead_, LookAhead::CreateBorrower(lane->stream_.get(), limits));
  CROUT_ASSIGN_OR_RETURN(lane->forked_, MakeEvent());
  CROUT_ASSIGN_OR_RETURN(lane->joined_, MakeEvent());
  return lane;
}

absl::Status SideLane::Fork(Context& context, std::span<std::byte> cublas_workspace) {
  ahead_->Borrow(context.look_ahead(), cublas_workspace);
  CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(forked_.get(), context.stream()));
  CROUT_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream_.get(), forked_.get(), 0));
  return absl::OkStatus();
}

absl::Status SideLane::Join(Context& context) {
  CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(joined_.get(), stream_.get()));
  CROUT_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(context.stream(), joined_.get(), 0));
  return absl::OkStatus();
}

SideLanes::Taken::~Taken() {
  const MutexLock lock(&from_.mutex_);
  for (auto& lane : lanes_) from_.free_.push_back(std::move(lane));
}

absl::StatusOr<std::unique_ptr<SideLanes>> SideLanes::Create(size_t count,
                                                             const DeviceLimits& limits) {
  auto lanes = std::make_unique<SideLanes>();
  const MutexLock lock(&lanes->mutex_);
  for (size_t k = 0; k < count; ++k) {
    CROUT_ASSIGN_OR_RETURN(auto lane, SideLane::Create(limits));
    lanes->free_.push_back(std::move(lane));
  }
  return lanes;
}

SideLanes::Taken SideLanes::Take(size_t most) {
  std::vector<std::unique_ptr<SideLane>> taken;
  const MutexLock lock(&mutex_);
  while (taken.size() < most && !free_.empty()) {
    taken.push_back(std::move(free_.back()));
    free_.pop_back();
  }
  return Taken(*this, std::move(taken));
}

}  // namespace crout::cuda
