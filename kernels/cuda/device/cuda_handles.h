// SPDX-License-Identifier: Apache-2.0

// Owners of CUDA streams, events and vendor library handles. Functions take the raw handle as a
// view. Create and destroy owners with their device current.
#ifndef CROUT_KERNELS_CUDA_DEVICE_CUDA_HANDLES_H_
#define CROUT_KERNELS_CUDA_DEVICE_CUDA_HANDLES_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <memory>
#include <type_traits>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"

namespace crout::cuda {

struct DestroyCudaHandle {
  void operator()(cudaStream_t stream) const { (void)cudaStreamDestroy(stream); }
  void operator()(cudaEvent_t event) const { (void)cudaEventDestroy(event); }
  void operator()(cublasHandle_t handle) const { (void)cublasDestroy(handle); }
  void operator()(cusolverDnHandle_t handle) const { (void)cusolverDnDestroy(handle); }
  void operator()(cusolverDnParams_t params) const { (void)cusolverDnDestroyParams(params); }
};

// All these handles are pointers to opaque types.
template <class Handle>
using UniqueCudaHandle = std::unique_ptr<std::remove_pointer_t<Handle>, DestroyCudaHandle>;

using Stream = UniqueCudaHandle<cudaStream_t>;
using Event = UniqueCudaHandle<cudaEvent_t>;
using CublasHandle = UniqueCudaHandle<cublasHandle_t>;
using CusolverHandle = UniqueCudaHandle<cusolverDnHandle_t>;
using CusolverParams = UniqueCudaHandle<cusolverDnParams_t>;

// Creates a stream that does not synchronize with the legacy default stream.
absl::StatusOr<Stream> MakeStream();
// Like MakeStream, but its kernels take precedence over those of other streams.
absl::StatusOr<Stream> MakeUrgentCudaStream();
// Creates an event without timing. Waiting host threads sleep instead of spinning.
absl::StatusOr<Event> MakeEvent();
// These functions create handles that enqueue on `stream`, which outlives them. The handles compute
// in the precision that each call names: no emulation, and TF32 only on request.
absl::StatusOr<CublasHandle> MakeCublasHandle(cudaStream_t stream);
absl::StatusOr<CusolverHandle> MakeCusolverHandle(cudaStream_t stream);
// Parameters that select getrf's fastest variant, CUSOLVER_ALG_0.
absl::StatusOr<CusolverParams> MakeGetrfParams();

// The vendor libraries' constant for an element type.
constexpr cudaDataType CudaTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDA_R_32F;
    case DType::kComplex64:
      return CUDA_C_32F;
    case DType::kComplex128:
      return CUDA_C_64F;
    case DType::kFloat64:
      break;
  }
  return CUDA_R_64F;
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CUDA_HANDLES_H_
