// Streams of one factorization.
#ifndef CROUT_KERNELS_CUDA_LOOK_AHEAD_H_
#define CROUT_KERNELS_CUDA_LOOK_AHEAD_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/cuda/confined_stream.h"
#include "kernels/cuda/cuda_handles.h"
#include "kernels/cuda/device_limits.h"

namespace crout {

// Where work is enqueued.
struct CudaLane {
  cudaStream_t stream;
  cublasHandle_t cublas;  // on that stream
};

// Two lanes beside a context's own: an urgent one, whose kernels go first where both wait for the
// GPU, and one for the rest, which leaves the urgent one the place of a cluster of 16 blocks where
// the GPU is large and can be partitioned, and is the context's own where not. Not thread-safe.
class LookAhead {
 public:
  static constexpr unsigned kSparedMultiprocessors = 16;

  // `main`, and cuBLAS's workspace on it, which the lane for the rest uses as well, outlive it.
  static absl::StatusOr<LookAhead> Create(const CudaLane& main, std::span<std::byte> workspace,
                                          const DeviceLimits& limits);

  CudaLane urgent() const { return {stream_.get(), cublas_.get()}; }
  CudaLane rest() const {
    return confined_ ? CudaLane{confined_->get(), confined_cublas_.get()} : main_;
  }

  // What is enqueued on either lane from here on comes after all that is on the main one.
  absl::Status Fork();
  // The other way round.
  absl::Status Join();
  // What is enqueued on either lane comes after all that is on the other.
  absl::Status Meet();
  // What is enqueued on the one lane comes after all that is on the other.
  absl::Status UrgentAwaitsRest();
  absl::Status RestAwaitsUrgent();

 private:
  LookAhead() = default;

  CudaLane main_ = {};
  CudaStream stream_;
  CublasHandle cublas_;
  std::optional<ConfinedStream> confined_;
  CublasHandle confined_cublas_;
  // A stream waits for what was recorded last when it was told to: they are used again and again.
  CudaEvent of_main_;
  CudaEvent of_urgent_;
  CudaEvent of_rest_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_LOOK_AHEAD_H_
