#include "kernels/cuda/look_ahead.h"

#include "kernels/cuda/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout {

absl::StatusOr<LookAhead> LookAhead::Create(cudaStream_t main) {
  LookAhead ahead;
  ahead.main_ = main;
  CROUT_ASSIGN_OR_RETURN(ahead.stream_, MakeUrgentCudaStream());
  CROUT_ASSIGN_OR_RETURN(ahead.cublas_, MakeCublasHandle(ahead.stream_.get()));
  CROUT_ASSIGN_OR_RETURN(ahead.fork_, MakeCudaEvent());
  CROUT_ASSIGN_OR_RETURN(ahead.join_, MakeCudaEvent());
  return ahead;
}

absl::Status LookAhead::Meet() {
  CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(fork_.get(), main_));
  CROUT_RETURN_IF_ERROR(Join());
  CROUT_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream_.get(), fork_.get(), 0));
  return absl::OkStatus();
}

absl::Status LookAhead::Await(cudaStream_t before, cudaEvent_t event, cudaStream_t behind) {
  CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(event, before));
  CROUT_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(behind, event, 0));
  return absl::OkStatus();
}

}  // namespace crout
