// SPDX-License-Identifier: Apache-2.0

// The streams of one factorization.
#ifndef CROUT_KERNELS_CUDA_DEVICE_LOOK_AHEAD_H_
#define CROUT_KERNELS_CUDA_DEVICE_LOOK_AHEAD_H_

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_handles.h"
#include "kernels/cuda/device/device_limits.h"

namespace crout::cuda {

// Kernels of this stream leave enough of the current device's multiprocessors free for one cluster,
// so that a kernel of another stream can start at once. Implemented as a stream of a green context
// with the other multiprocessors.
class ConfinedStream {
 public:
  // `spared`: the number of multiprocessors to leave free, a multiple of 8. Returns nullopt if the
  // driver or the GPU does not support this partition.
  static absl::StatusOr<std::optional<ConfinedStream>> Create(unsigned spared);

  cudaStream_t get() const { return stream_.get(); }

 private:
  using Context = std::unique_ptr<std::remove_pointer_t<CUgreenCtx>, decltype(&cuGreenCtxDestroy)>;

  ConfinedStream(Context context, Stream stream)
      : context_(std::move(context)), stream_(std::move(stream)) {}

  Context context_;  // outlives its streams
  Stream stream_;
};

// A stream, the cuBLAS handle for products on it, and their device memory, aligned to 256 bytes. If
// the workspace is empty, products use the memory that cuBLAS allocates for the handle.
struct Queue {
  cudaStream_t stream = nullptr;
  cublasHandle_t cublas = nullptr;
  std::span<std::byte> workspace;

  // Directs the handle's products to this queue. If queues share a handle, bind a queue before each
  // use.
  absl::Status Bind() const;
};

// Two queues beside a context's own. The kernels of the urgent queue take precedence. The trailing
// queue is for the trailing matrix. On a large GPU that can be partitioned, it leaves
// multiprocessors for a cluster of 16 blocks of the urgent queue; otherwise it is the context's own
// queue. Not thread-safe.
class LookAhead {
 public:
  static constexpr unsigned kSparedMultiprocessors = 16;

  // Creates queues with their own handles. `main` outlives them; the trailing queue shares its
  // workspace.
  static absl::StatusOr<LookAhead> Create(const Queue& main, const DeviceLimits& limits);
  // Creates queues without handles, because cuBLAS keeps memory for each handle (32 MiB on Hopper).
  // Call Borrow() before any other use. `main` outlives them.
  static absl::StatusOr<LookAhead> CreateBorrower(cudaStream_t main, const DeviceLimits& limits);

  // From now on, uses the handles of `lender`, which outlives the work enqueued through them. Only
  // one thread may use both, and it must bind a queue before each use. `workspace` serves the main
  // and the trailing queue.
  void Borrow(const LookAhead& lender, std::span<std::byte> workspace);

  // Binds the urgent queue with this workspace, and the trailing queue with its own.
  absl::Status Bind(std::span<std::byte> urgent_workspace) const;

  Queue main() const { return main_; }
  Queue urgent() const { return urgent_; }
  Queue trailing() const { return confined_ ? confined_queue_ : main_; }

  // Later work on the urgent and trailing queues follows everything enqueued on the main queue.
  absl::Status Fork();
  // Later work on the main queue follows everything enqueued on the urgent and trailing queues.
  absl::Status Join();
  // Later work on each of the urgent and trailing queues follows everything enqueued on the other
  // queue.
  absl::Status SyncQueues();
  // The one-sided version: the queue named first waits for the other.
  absl::Status UrgentAwaitsTrailing();
  absl::Status TrailingAwaitsUrgent();

 private:
  LookAhead() = default;

  Stream stream_;
  std::optional<ConfinedStream> confined_;
  CublasHandle cublas_;  // null in a borrower, like confined_cublas_
  CublasHandle confined_cublas_;
  Queue main_;
  Queue urgent_;  // on stream_
  Queue confined_queue_;
  // Recorded again for every wait. One event per queue is enough: a stream waits for the recording
  // that was the last one when the wait was enqueued.
  Event main_event_;
  Event urgent_event_;
  Event trailing_event_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_LOOK_AHEAD_H_
