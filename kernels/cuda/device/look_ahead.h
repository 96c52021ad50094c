// Streams of one factorization.
#ifndef CROUT_KERNELS_CUDA_DEVICE_LOOK_AHEAD_H_
#define CROUT_KERNELS_CUDA_DEVICE_LOOK_AHEAD_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/confined_stream.h"
#include "kernels/cuda/device/cuda_handles.h"
#include "kernels/cuda/device/device_limits.h"

namespace crout::cuda {

// A stream, and the cuBLAS handle for products that are enqueued on it.
struct Lane {
  cudaStream_t stream;
  cublasHandle_t cublas;
};

// Two lanes beside a context's own: an urgent one, whose kernels go first where both wait for the
// GPU, and one for the trailing matrix, which leaves the urgent one the place of a cluster of 16
// blocks where the GPU is large and can be partitioned, and is the context's own where not. Not
// thread-safe.
class LookAhead {
 public:
  static constexpr unsigned kSparedMultiprocessors = 16;

  // `main` outlives it.
  static absl::StatusOr<LookAhead> Create(const Lane& main, const DeviceLimits& limits);

  // cuBLAS's workspace on the trailing lane and, where they are one, on the main one: outlives what
  // is enqueued there.
  absl::Status SetTrailingWorkspace(std::span<std::byte> workspace);

  Lane urgent() const { return {stream_.get(), cublas_.get()}; }
  Lane trailing() const {
    return confined_ ? Lane{confined_->get(), confined_cublas_.get()} : main_;
  }

  // What is enqueued on either lane from here on comes after all that is on the main one.
  absl::Status Fork();
  // What is enqueued on the main lane from here on comes after all that is on the other two.
  absl::Status Join();
  // What is enqueued on the urgent or the trailing lane from here on comes after all that is on the
  // other of the two.
  absl::Status Meet();
  // The same for one of the two: the lane named first waits for the other.
  absl::Status UrgentAwaitsTrailing();
  absl::Status TrailingAwaitsUrgent();

 private:
  LookAhead() = default;

  Lane main_ = {};
  Stream stream_;
  CublasHandle cublas_;
  std::optional<ConfinedStream> confined_;
  CublasHandle confined_cublas_;
  // Recorded anew at every wait. One event of each lane is enough: a stream that waits for an event
  // waits for what was recorded last when it was told to.
  Event of_main_;
  Event of_urgent_;
  Event of_trailing_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_LOOK_AHEAD_H_
