// SPDX-License-Identifier: Apache-2.0

// Functions of the CUDA driver, looked up by name, so that a machine without a GPU does not need
// the driver library.
#ifndef CROUT_KERNELS_CUDA_DEVICE_DRIVER_FUNCTION_H_
#define CROUT_KERNELS_CUDA_DEVICE_DRIVER_FUNCTION_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/cuda/device/cuda_status.h"

namespace crout::cuda {

// Sets `*function`; null if the driver is older than the toolkit's header.
template <class F>
absl::Status FindDriverFunction(const char* name, F* function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  CROUT_RETURN_IF_CUDA_ERROR(
      cudaGetDriverEntryPointByVersion(name, &found, CUDART_VERSION, cudaEnableDefault, &result));
  *function = result == cudaDriverEntryPointSuccess ? reinterpret_cast<F>(found) : nullptr;
  return absl::OkStatus();
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_DRIVER_FUNCTION_H_
