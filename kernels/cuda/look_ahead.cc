#include "kernels/cuda/look_ahead.h"

#include <initializer_list>

#include "kernels/cuda/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Of a smaller GPU the rest would lose more than a quarter.
constexpr int kLeastMultiprocessors = 4 * LookAhead::kSparedMultiprocessors;

absl::Status Record(const CudaEvent& event, const CudaLane& lane) {
  return CudaStatus(cudaEventRecord(event.get(), lane.stream), "cudaEventRecord");
}

absl::Status Await(const CudaEvent& event, std::initializer_list<CudaLane> lanes) {
  for (const CudaLane& lane : lanes) {
    CROUT_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(lane.stream, event.get(), 0));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LookAhead> LookAhead::Create(const CudaLane& main, std::span<std::byte> workspace,
                                            const DeviceLimits& limits) {
  LookAhead ahead;
  ahead.main_ = main;
  CROUT_ASSIGN_OR_RETURN(ahead.stream_, MakeUrgentCudaStream());
  CROUT_ASSIGN_OR_RETURN(ahead.cublas_, MakeCublasHandle(ahead.stream_.get()));
  if (limits.multiprocessors >= kLeastMultiprocessors) {
    CROUT_ASSIGN_OR_RETURN(ahead.confined_, ConfinedStream::Create(kSparedMultiprocessors));
  }
  if (ahead.confined_) {
    CROUT_ASSIGN_OR_RETURN(ahead.confined_cublas_, MakeCublasHandle(ahead.confined_->get()));
    CROUT_RETURN_IF_CUBLAS_ERROR(
        cublasSetWorkspace(ahead.confined_cublas_.get(), workspace.data(), workspace.size()));
  }
  CROUT_ASSIGN_OR_RETURN(ahead.of_main_, MakeCudaEvent());
  CROUT_ASSIGN_OR_RETURN(ahead.of_urgent_, MakeCudaEvent());
  CROUT_ASSIGN_OR_RETURN(ahead.of_rest_, MakeCudaEvent());
  return ahead;
}

absl::Status LookAhead::Fork() {
  CROUT_RETURN_IF_ERROR(Record(of_main_, main_));
  return Await(of_main_, {urgent(), rest()});
}

absl::Status LookAhead::Join() {
  CROUT_RETURN_IF_ERROR(Record(of_urgent_, urgent()));
  CROUT_RETURN_IF_ERROR(Record(of_rest_, rest()));
  CROUT_RETURN_IF_ERROR(Await(of_urgent_, {main_}));
  return Await(of_rest_, {main_});
}

absl::Status LookAhead::Meet() {
  // Both are recorded before either waits: one half after the other, a lane would wait for the
  // other's wait too, which takes its time.
  CROUT_RETURN_IF_ERROR(Record(of_urgent_, urgent()));
  CROUT_RETURN_IF_ERROR(Record(of_rest_, rest()));
  CROUT_RETURN_IF_ERROR(Await(of_urgent_, {rest()}));
  return Await(of_rest_, {urgent()});
}

absl::Status LookAhead::UrgentAwaitsRest() {
  CROUT_RETURN_IF_ERROR(Record(of_rest_, rest()));
  return Await(of_rest_, {urgent()});
}

absl::Status LookAhead::RestAwaitsUrgent() {
  CROUT_RETURN_IF_ERROR(Record(of_urgent_, urgent()));
  return Await(of_urgent_, {rest()});
}

}  // namespace crout
