// Two streams of one factorization.
#ifndef CROUT_KERNELS_CUDA_LOOK_AHEAD_H_
#define CROUT_KERNELS_CUDA_LOOK_AHEAD_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_handles.h"

namespace crout {

// Where work is enqueued.
struct CudaLane {
  cudaStream_t stream;
  cublasHandle_t cublas;  // on that stream
};

// An urgent lane beside a context's stream, whose kernels go first where both wait for the GPU. Not
// thread-safe.
class LookAhead {
 public:
  // `main` outlives it.
  static absl::StatusOr<LookAhead> Create(cudaStream_t main);

  CudaLane lane() const { return {stream_.get(), cublas_.get()}; }

  // What is enqueued on the urgent lane from here on comes after all that is on the main one.
  absl::Status Fork() { return Await(main_, fork_.get(), stream_.get()); }
  // The other way round.
  absl::Status Join() { return Await(stream_.get(), join_.get(), main_); }
  // Both.
  absl::Status Meet();

 private:
  LookAhead() = default;
  static absl::Status Await(cudaStream_t before, cudaEvent_t event, cudaStream_t behind);

  cudaStream_t main_ = nullptr;
  CudaStream stream_;
  CublasHandle cublas_;
  // A stream waits for what was recorded last when it was told to: they are used again and again.
  CudaEvent fork_;
  CudaEvent join_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_LOOK_AHEAD_H_
