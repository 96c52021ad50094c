// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/cuda_status.h"

#include "absl/strings/str_cat.h"

namespace crout::cuda {
namespace {

bool IsSticky(cudaError_t code) {
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorCudartUnloading:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

// Removes the arguments of the call from messages, because they contain addresses.
absl::string_view FunctionOf(absl::string_view call) { return call.substr(0, call.find('(')); }

}  // namespace

absl::Status CudaStatus(cudaError_t code, absl::string_view call) {
  if (code == cudaSuccess) return absl::OkStatus();
  const std::string message =
      absl::StrCat(FunctionOf(call), ": ", cudaGetErrorName(code), ": ", cudaGetErrorString(code));
  if (IsSticky(code)) return absl::UnavailableError(message);
  (void)cudaGetLastError();
  if (code == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

absl::Status CublasStatus(cublasStatus_t code, absl::string_view call) {
  if (code == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  if (absl::Status runtime = CudaStatus(cudaPeekAtLastError(), call);
      absl::IsUnavailable(runtime)) {
    return runtime;
  }
  const std::string message = absl::StrCat(FunctionOf(call), ": ", cublasGetStatusName(code));
  if (code == CUBLAS_STATUS_ALLOC_FAILED) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

absl::Status CusolverStatus(cusolverStatus_t code, absl::string_view call) {
  if (code == CUSOLVER_STATUS_SUCCESS) return absl::OkStatus();
  if (absl::Status runtime = CudaStatus(cudaPeekAtLastError(), call);
      absl::IsUnavailable(runtime)) {
    return runtime;
  }
  const std::string message =
      absl::StrCat(FunctionOf(call), ": cuSOLVER status ", static_cast<int>(code));
  if (code == CUSOLVER_STATUS_ALLOC_FAILED) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

}  // namespace crout::cuda
