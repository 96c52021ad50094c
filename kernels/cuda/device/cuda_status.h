// Codes of the CUDA libraries as absl::Status, one macro for each library.
#ifndef CROUT_KERNELS_CUDA_DEVICE_CUDA_STATUS_H_
#define CROUT_KERNELS_CUDA_DEVICE_CUDA_STATUS_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

// `call` is what failed, for the message. A sticky error, after which the driver answers every
// later call of the process with the same code, is UNAVAILABLE: fence the device. Lack of memory is
// RESOURCE_EXHAUSTED, all else INTERNAL. Errors that are not sticky are also taken off the
// runtime's record of the last error, so that no later launch is blamed for them.
absl::Status CudaStatus(cudaError_t code, absl::string_view call);

// The vendor libraries hide the runtime's code behind EXECUTION_FAILED and the like: these look it
// up, so that a sticky error is UNAVAILABLE here too.
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
