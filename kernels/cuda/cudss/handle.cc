// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/cudss/handle.h"

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

absl::StatusOr<std::unique_ptr<CudssHandle>> CudssHandle::Create(const CudssLibrary& library,
                                                                 CudssMemory memory,
                                                                 CudssThreads threads) {
  std::unique_ptr<CudssHandle> made(new CudssHandle(library));
  const CudssFunctions& f = library.functions();
  MutexLock lock(&made->mutex);
  CROUT_ASSIGN_OR_RETURN(made->stream_, MakeStream());
  CROUT_ASSIGN_OR_RETURN(made->event_, MakeEvent());
  CROUT_RETURN_IF_CUDSS_ERROR(f.create(&made->handle_), "cudssCreate");
  CROUT_RETURN_IF_CUDSS_ERROR(f.set_stream(made->handle_, made->stream_.get()), "cudssSetStream");
  if (memory == CudssMemory::kArenas) {
    const CudssMemoryHandler handler = HandlerOf(&made->arena_);
    CROUT_RETURN_IF_CUDSS_ERROR(f.set_memory(made->handle_, &handler), "cudssSetDeviceMemHandler");
  }
  if (threads == CudssThreads::kAllCores) {
    CROUT_RETURN_IF_CUDSS_ERROR(
        f.set_threading_layer(made->handle_, library.threading_layer().c_str()),
        "cudssSetThreadingLayer");
  }
  return made;
}

// A failure of destroy() is ignored, because nothing can be done about it.
CudssHandle::~CudssHandle() {
  MutexLock lock(&mutex);
  if (handle_ != nullptr) functions().destroy(handle_);
}

absl::Status CudssHandle::Enqueue(cudaStream_t stream, absl::FunctionRef<absl::Status()> execute) {
  CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(event_.get(), stream));
  CROUT_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream_.get(), event_.get()));
  const absl::Status status = execute();
  CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(event_.get(), stream_.get()));
  CROUT_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream, event_.get()));
  return status;
}

}  // namespace crout::cuda
