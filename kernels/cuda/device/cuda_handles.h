// Owners of CUDA streams, events and vendor library handles. Each has one owner, which frees it;
// functions take the raw handle, which is the view. Create and destroy them with their device
// current.
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

// A stream that does not wait for the legacy default stream.
absl::StatusOr<Stream> MakeStream();
// The same, whose kernels go before those of other streams where both wait for the GPU.
absl::StatusOr<Stream> MakeUrgentCudaStream();
// An event without timing, whose waiters sleep instead of spinning.
absl::StatusOr<Event> MakeEvent();
// Handles that enqueue on `stream`, which outlives them, and compute in the precision that each
// call names: no emulation, TF32 only where asked for.
absl::StatusOr<CublasHandle> MakeCublasHandle(cudaStream_t stream);
absl::StatusOr<CusolverHandle> MakeCusolverHandle(cudaStream_t stream);
// Parameters that choose getrf's fastest variant, CUSOLVER_ALG_0.
absl::StatusOr<CusolverParams> MakeGetrfParams();

// The vendor libraries' name of an element type.
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
