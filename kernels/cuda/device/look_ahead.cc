#include "kernels/cuda/device/look_ahead.h"

#include <initializer_list>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// Of a smaller GPU the trailing lane would lose more than a quarter.
constexpr int kLeastMultiprocessors = 4 * LookAhead::kSparedMultiprocessors;

absl::Status Record(const Event& event, const Lane& lane) {
  return CudaStatus(cudaEventRecord(event.get(), lane.stream), "cudaEventRecord");
}

absl::Status Await(const Event& event, std::initializer_list<Lane> lanes) {
  for (const Lane& lane : lanes) {
    CROUT_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(lane.stream, event.get(), 0));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LookAhead> LookAhead::Create(const Lane& main, const DeviceLimits& limits) {
  LookAhead ahead;
  ahead.main_ = main;
  CROUT_ASSIGN_OR_RETURN(ahead.stream_, MakeUrgentCudaStream());
  CROUT_ASSIGN_OR_RETURN(ahead.cublas_, MakeCublasHandle(ahead.stream_.get()));
  if (limits.multiprocessors >= kLeastMultiprocessors) {
    CROUT_ASSIGN_OR_RETURN(ahead.confined_, ConfinedStream::Create(kSparedMultiprocessors));
  }
  if (ahead.confined_) {
    CROUT_ASSIGN_OR_RETURN(ahead.confined_cublas_, MakeCublasHandle(ahead.confined_->get()));
  }
  CROUT_ASSIGN_OR_RETURN(ahead.of_main_, MakeEvent());
  CROUT_ASSIGN_OR_RETURN(ahead.of_urgent_, MakeEvent());
  CROUT_ASSIGN_OR_RETURN(ahead.of_trailing_, MakeEvent());
  return ahead;
}

absl::Status LookAhead::SetTrailingWorkspace(std::span<std::byte> workspace) {
  return CublasStatus(cublasSetWorkspace(trailing().cublas, workspace.data(), workspace.size()),
                      "cublasSetWorkspace");
}

absl::Status LookAhead::Fork() {
  CROUT_RETURN_IF_ERROR(Record(of_main_, main_));
  return Await(of_main_, {urgent(), trailing()});
}

absl::Status LookAhead::Join() {
  CROUT_RETURN_IF_ERROR(Record(of_urgent_, urgent()));
  CROUT_RETURN_IF_ERROR(Record(of_trailing_, trailing()));
  CROUT_RETURN_IF_ERROR(Await(of_urgent_, {main_}));
  return Await(of_trailing_, {main_});
}

absl::Status LookAhead::Meet() {
  // Both are recorded before either waits: one half after the other, a lane would wait for the
  // other's wait too, which takes its time.
  CROUT_RETURN_IF_ERROR(Record(of_urgent_, urgent()));
  CROUT_RETURN_IF_ERROR(Record(of_trailing_, trailing()));
  CROUT_RETURN_IF_ERROR(Await(of_urgent_, {trailing()}));
  return Await(of_trailing_, {urgent()});
}

absl::Status LookAhead::UrgentAwaitsTrailing() {
  CROUT_RETURN_IF_ERROR(Record(of_trailing_, trailing()));
  return Await(of_trailing_, {urgent()});
}

absl::Status LookAhead::TrailingAwaitsUrgent() {
  CROUT_RETURN_IF_ERROR(Record(of_urgent_, urgent()));
  return Await(of_urgent_, {trailing()});
}

}  // namespace crout::cuda
