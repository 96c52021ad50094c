// SPDX-License-Identifier: Apache-2.0

// Additional streams beside a context's own, for members of a batch that are factored concurrently.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_SIDE_QUEUES_H_
#define CROUT_KERNELS_CUDA_IRR_LU_SIDE_QUEUES_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_handles.h"
#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/device/look_ahead.h"
#include "kernels/util/mutex.h"

namespace crout::cuda {

// An additional stream with the queues that look-ahead needs. It borrows the cuBLAS handles of the
// context whose members it works on. Not thread-safe.
class SideQueue {
 public:
  // Requires that the GPU is current.
  static absl::StatusOr<std::unique_ptr<SideQueue>> Create(const DeviceLimits& limits);

  Queue main() const { return ahead_->main(); }
  LookAhead& ahead() { return *ahead_; }

  // Later work on this queue follows everything enqueued on the context's stream. It uses the
  // context's handles and `cublas_workspace`.
  absl::Status Fork(Context& context, std::span<std::byte> cublas_workspace);
  // Later work on the context's stream follows everything enqueued on this queue. The caller must
  // then bind the context's queues to regain its handles.
  absl::Status Join(Context& context);

 private:
  SideQueue() = default;

  Stream stream_;
  std::optional<LookAhead> ahead_;
  Event forked_;
  Event joined_;
};

// The side queues of a device, created once. A caller takes queues while it enqueues work. That
// work follows the work that earlier callers enqueued there and joined to their streams.
// Thread-safe.
class SideQueues {
 public:
  // Queues in use; the destructor returns them.
  class Taken {
   public:
    Taken(SideQueues& from, std::vector<std::unique_ptr<SideQueue>> queues)
        : from_(from), queues_(std::move(queues)) {}
    ~Taken();
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;

    size_t size() const { return queues_.size(); }
    SideQueue& operator[](size_t k) const { return *queues_[k]; }

   private:
    SideQueues& from_;
    std::vector<std::unique_ptr<SideQueue>> queues_;
  };

  // Requires that the GPU is current.
  static absl::StatusOr<std::unique_ptr<SideQueues>> Create(size_t count,
                                                            const DeviceLimits& limits);

  // Takes at most `most` of the free queues.
  Taken Take(size_t most);

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<SideQueue>> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_SIDE_QUEUES_H_
