// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/cuda_handles.h"

#include "kernels/cuda/device/cuda_status.h"

namespace crout::cuda {

absl::StatusOr<Stream> MakeStream() {
  cudaStream_t stream = nullptr;
  CROUT_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

absl::StatusOr<Stream> MakeUrgentCudaStream() {
  int least = 0;
  int greatest = 0;
  CROUT_RETURN_IF_CUDA_ERROR(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  CROUT_RETURN_IF_CUDA_ERROR(
      cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  return Stream(stream);
}

absl::StatusOr<Event> MakeEvent() {
  cudaEvent_t event = nullptr;
  CROUT_RETURN_IF_CUDA_ERROR(
      cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync));
  return Event(event);
}

absl::StatusOr<CublasHandle> MakeCublasHandle(cudaStream_t stream) {
  cublasHandle_t raw = nullptr;
  CROUT_RETURN_IF_CUBLAS_ERROR(cublasCreate(&raw));
  CublasHandle handle(raw);
  CROUT_RETURN_IF_CUBLAS_ERROR(cublasSetStream(raw, stream));
  CROUT_RETURN_IF_CUBLAS_ERROR(cublasSetMathMode(raw, CUBLAS_DEFAULT_MATH));
  return handle;
}

absl::StatusOr<CusolverHandle> MakeCusolverHandle(cudaStream_t stream) {
  cusolverDnHandle_t raw = nullptr;
  CROUT_RETURN_IF_CUSOLVER_ERROR(cusolverDnCreate(&raw));
  CusolverHandle handle(raw);
  CROUT_RETURN_IF_CUSOLVER_ERROR(cusolverDnSetStream(raw, stream));
  CROUT_RETURN_IF_CUSOLVER_ERROR(cusolverDnSetMathMode(raw, CUSOLVER_DEFAULT_MATH));
  return handle;
}

absl::StatusOr<CusolverParams> MakeGetrfParams() {
  cusolverDnParams_t raw = nullptr;
  CROUT_RETURN_IF_CUSOLVER_ERROR(cusolverDnCreateParams(&raw));
  CusolverParams params(raw);
  CROUT_RETURN_IF_CUSOLVER_ERROR(cusolverDnSetAdvOptions(raw, CUSOLVERDN_GETRF, CUSOLVER_ALG_0));
  return params;
}

}  // namespace crout::cuda
