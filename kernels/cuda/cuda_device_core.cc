#include "kernels/cuda/cuda_device_core.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_status.h"

namespace crout {

absl::Status CudaDeviceCore::MakeCurrent() {
  if (!healthy()) {
    return absl::UnavailableError(absl::StrCat("cuda:", ordinal_, " was lost to an earlier error"));
  }
  return Observe(CudaStatus(cudaSetDevice(ordinal_), "cudaSetDevice"));
}

absl::Status CudaDeviceCore::Observe(absl::Status status) {
  if (absl::IsUnavailable(status)) healthy_.store(false, std::memory_order_release);
  return status;
}

}  // namespace crout
