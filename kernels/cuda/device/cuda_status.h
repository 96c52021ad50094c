// SPDX-License-Identifier: Apache-2.0

// Converts the CUDA libraries' error codes to absl::Status, with one macro per library.
#ifndef CROUT_KERNELS_CUDA_DEVICE_CUDA_STATUS_H_
#define CROUT_KERNELS_CUDA_DEVICE_CUDA_STATUS_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

// `call` names the failed function in the message. A sticky error is one that the driver returns
// for every later call of the process; it becomes UNAVAILABLE, and the device must be fenced. Lack
// of memory becomes RESOURCE_EXHAUSTED, all else INTERNAL. Errors that are not sticky are also
// cleared from the runtime's last error, so that later launches do not report them.
absl::Status CudaStatus(cudaError_t code, absl::string_view call);

// The vendor libraries hide the runtime's code behind EXECUTION_FAILED and similar codes. These
// functions look up the runtime's code, so that a sticky error becomes UNAVAILABLE here too.
absl::Status CublasStatus(cublasStatus_t code, absl::string_view call);
absl::Status CusolverStatus(cusolverStatus_t code, absl::string_view call);

}  // namespace crout::cuda

// Return the status of a failed call from the enclosing function.
#define CROUT_RETURN_IF_CUDA_ERROR(call) \
  CROUT_RETURN_IF_ERROR(::crout::cuda::CudaStatus((call), #call))
#define CROUT_RETURN_IF_CUBLAS_ERROR(call) \
  CROUT_RETURN_IF_ERROR(::crout::cuda::CublasStatus((call), #call))
#define CROUT_RETURN_IF_CUSOLVER_ERROR(call) \
  CROUT_RETURN_IF_ERROR(::crout::cuda::CusolverStatus((call), #call))

#endif  // CROUT_KERNELS_CUDA_DEVICE_CUDA_STATUS_H_
