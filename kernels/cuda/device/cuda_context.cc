// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/cuda_context.h"

#include <chrono>
#include <new>
#include <thread>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/ops/cuda_ops.h"
#include "kernels/util/poll_pause.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

absl::StatusOr<std::unique_ptr<Context>> Context::Create(Device& device, DeviceCore& core) {
  CROUT_RETURN_IF_ERROR(core.MakeCurrent());
  auto context = std::unique_ptr<Context>(new Context(device, core));
  CROUT_RETURN_IF_ERROR(core.Observe(context->Initialize()));
  return context;
}

absl::Status Context::Initialize() {
  CROUT_ASSIGN_OR_RETURN(stream_, MakeStream());
  CROUT_ASSIGN_OR_RETURN(report_, device_.staging_memory().Allocate(sizeof(DeviceReport)));
  new (report_.data()) DeviceReport();
  CROUT_ASSIGN_OR_RETURN(device_words_,
                         device_.memory().Allocate(sizeof(ReductionScratch) + sizeof(int)));
  const ReductionScratch initial;
  // Enqueued on the context's own stream: a plain cudaMemcpy might still run when the first kernel
  // starts.
  CROUT_RETURN_IF_CUDA_ERROR(
      cudaMemcpyAsync(scratch(), &initial, sizeof(initial), cudaMemcpyHostToDevice, stream()));
  CROUT_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream()));
  CROUT_ASSIGN_OR_RETURN(cublas_workspace_, device_.memory().Allocate(kCublasWorkspaceBytes));
  CROUT_ASSIGN_OR_RETURN(cublas_, MakeCublasHandle(stream()));
  CROUT_RETURN_IF_ERROR(queue().Bind());
  CROUT_ASSIGN_OR_RETURN(look_ahead_, LookAhead::Create(queue(), core_.limits()));
  CROUT_ASSIGN_OR_RETURN(cusolver_, MakeCusolverHandle(stream()));
  CROUT_ASSIGN_OR_RETURN(getrf_params_, MakeGetrfParams());
  ops_ = std::make_unique<CudaMatrixOps>(*this);
  krylov_ops_ = std::make_unique<CudaKrylovOps>(*this);
  sparse_ops_ = std::make_unique<CudaSparseOps>(*this);
  return absl::OkStatus();
}

Context::~Context() {
  // Work in flight still uses the memory that is about to be freed. A lost device runs nothing any
  // more.
  if (cudaSetDevice(core_.ordinal()) == cudaSuccess && stream_ != nullptr) {
    (void)cudaStreamSynchronize(stream());
    if (look_ahead_) {
      (void)cudaStreamSynchronize(look_ahead_->urgent().stream);
      (void)cudaStreamSynchronize(look_ahead_->trailing().stream);
    }
  }
}

absl::Status Context::BindQueues() {
  CROUT_RETURN_IF_ERROR(queue().Bind());
  return look_ahead_->Bind({});
}

absl::Status Context::Synchronize() {
  CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
  return core_.Observe(CudaStatus(cudaStreamSynchronize(stream()), "cudaStreamSynchronize"));
}

absl::Status Context::SynchronizeOrStop(StopRequested stop) {
  CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
  const auto begin = std::chrono::steady_clock::now();
  while (cudaStreamQuery(stream()) == cudaErrorNotReady) {
    if (stop()) report().stop = 1;
    const auto pause = PollPause(std::chrono::steady_clock::now() - begin);
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
  }
  return Synchronize();
}

absl::StatusOr<std::byte*> Context::HostWorkspace(size_t bytes) {
  if (bytes > host_workspace_.size()) {
    // The routine enqueued last may still read the old workspace. This happens only if a matrix is
    // larger than all earlier ones of this context.
    CROUT_RETURN_IF_ERROR(Synchronize());
    host_workspace_.resize(bytes);
  }
  return host_workspace_.data();
}

}  // namespace crout::cuda
