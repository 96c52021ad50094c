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

// A stream, the cuBLAS handle for products that are enqueued on it, and the device memory that they
// work in, at a multiple of 256 bytes: without it, in what cuBLAS keeps for the handle.
struct Lane {
  cudaStream_t stream = nullptr;
  cublasHandle_t cublas = nullptr;
  std::span<std::byte> workspace;

  // Products by the handle are this lane's from here on, whosever they were: of lanes that share a
  // handle, each is bound before it is used.
  absl::Status Bind() const;
};

// Two lanes beside a context's own: an urgent one, whose kernels go first where both wait for the
// GPU, and one for the trailing matrix, which leaves the urgent one the place of a cluster of 16
// blocks where the GPU is large and can be partitioned, and is the context's own where not. Not
// thread-safe.
class LookAhead {
 public:
  static constexpr unsigned kSparedMultiprocessors = 16;

  // With handles of its own. `main` outlives it, and its workspace is the trailing lane's too.
  static absl::StatusOr<LookAhead> Create(const Lane& main, const DeviceLimits& limits);
  // Without any, since cuBLAS keeps memory for each (32 MiB on Hopper): before all else it borrows
  // some. The stream outlives it.
  static absl::StatusOr<LookAhead> CreateBorrower(cudaStream_t main, const DeviceLimits& limits);

  // From here on the handles of `lender`, which outlives what is enqueued by them. Only one thread
  // works with either, and binds before it does. `workspace`: the main and the trailing lane's.
  void Borrow(const LookAhead& lender, std::span<std::byte> workspace);

  // Binds the urgent lane, with this workspace, and the trailing one, whose workspace it has.
  absl::Status Bind(std::span<std::byte> urgent_workspace) const;

  Lane main() const { return main_; }
  Lane urgent() const { return urgent_; }
  Lane trailing() const { return confined_ ? confined_lane_ : main_; }

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

  Stream stream_;
  std::optional<ConfinedStream> confined_;
  CublasHandle cublas_;  // this and the next one not where they are borrowed
  CublasHandle confined_cublas_;
  Lane main_;
  Lane urgent_;  // on stream_
  Lane confined_lane_;
  // Recorded anew at every wait. One event of each lane is enough: a stream that waits for an event
  // waits for what was recorded last when it was told to.
  Event of_main_;
  Event of_urgent_;
  Event of_trailing_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_LOOK_AHEAD_H_
