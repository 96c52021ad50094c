// SPDX-License-Identifier: Apache-2.0

// The streams of one factorization.
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

// A stream, the cuBLAS handle for products on it, and their device memory, aligned to 256 bytes. If
// the workspace is empty, products use the memory that cuBLAS allocates for the handle.
struct Lane {
  cudaStream_t stream = nullptr;
  cublasHandle_t cublas = nullptr;
  std::span<std::byte> workspace;

  // Directs the handle's products to this lane. If lanes share a handle, bind a lane before each
  // use.
  absl::Status Bind() const;
};

// Two lanes beside a context's own. The kernels of the urgent lane take precedence. The trailing
// lane is for the trailing matrix. On a large GPU that can be partitioned, it leaves
// multiprocessors for a cluster of 16 blocks of the urgent lane; otherwise it is the context's own
// lane. Not thread-safe.
class LookAhead {
 public:
  static constexpr unsigned kSparedMultiprocessors = 16;

  // Creates lanes with their own handles. `main` outlives them; the trailing lane shares its
  // workspace.
  static absl::StatusOr<LookAhead> Create(const Lane& main, const DeviceLimits& limits);
  // Creates lanes without handles, because cuBLAS keeps memory for each handle (32 MiB on Hopper).
  // Call Borrow() before any other use. `main` outlives them.
  static absl::StatusOr<LookAhead> CreateBorrower(cudaStream_t main, const DeviceLimits& limits);

  // From now on, uses the handles of `lender`, which outlives the work enqueued through them. Only
  // one thread may use both, and it must bind a lane before each use. `workspace` serves the main
  // and the trailing lane.
  void Borrow(const LookAhead& lender, std::span<std::byte> workspace);

  // Binds the urgent lane with this workspace, and the trailing lane with its own.
  absl::Status Bind(std::span<std::byte> urgent_workspace) const;

  Lane main() const { return main_; }
  Lane urgent() const { return urgent_; }
  Lane trailing() const { return confined_ ? confined_lane_ : main_; }

  // Later work on the urgent and trailing lanes follows everything enqueued on the main lane.
  absl::Status Fork();
  // Later work on the main lane follows everything enqueued on the urgent and trailing lanes.
  absl::Status Join();
  // Later work on the urgent and the trailing lane follows everything enqueued on the other of the
  // two.
  absl::Status Meet();
  // The one-sided version: the lane named first waits for the other.
  absl::Status UrgentAwaitsTrailing();
  absl::Status TrailingAwaitsUrgent();

 private:
  LookAhead() = default;

  Stream stream_;
  std::optional<ConfinedStream> confined_;
  CublasHandle cublas_;  // null in a borrower, like confined_cublas_
  CublasHandle confined_cublas_;
  Lane main_;
  Lane urgent_;  // on stream_
  Lane confined_lane_;
  // Recorded again for every wait. One event per lane is enough: a stream waits for the recording
  // that was the last one when the wait was enqueued.
  Event of_main_;
  Event of_urgent_;
  Event of_trailing_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_LOOK_AHEAD_H_
