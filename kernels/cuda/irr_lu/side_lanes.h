// Streams beside a context's own, for members of a batch that are factored side by side.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_SIDE_LANES_H_
#define CROUT_KERNELS_CUDA_IRR_LU_SIDE_LANES_H_

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

// One of them, with the lanes that look-ahead needs. It has no cuBLAS handles but those of the
// context whose members it works on. Not thread-safe.
class SideLane {
 public:
  // With the GPU current.
  static absl::StatusOr<std::unique_ptr<SideLane>> Create(const DeviceLimits& limits);

  Lane main() const { return ahead_->main(); }
  LookAhead& ahead() { return *ahead_; }

  // What is enqueued here from now on comes after all that is on the context's stream, and is
  // enqueued by the context's handles, in this workspace.
  absl::Status Fork(Context& context, std::span<std::byte> cublas_workspace);
  // What is enqueued on the context's stream from now on comes after all that is here. Its handles
  // are the context's own again once its lanes are bound.
  absl::Status Join(Context& context);

 private:
  SideLane() = default;

  Stream stream_;
  std::optional<LookAhead> ahead_;
  Event forked_;
  Event joined_;
};

// A device's lanes, made once. Whoever enqueues takes some meanwhile: behind what others left on
// them, which was joined to their streams. Thread-safe.
class SideLanes {
 public:
  // Back where they came from in the end.
  class Taken {
   public:
    Taken(SideLanes& from, std::vector<std::unique_ptr<SideLane>> lanes)
        : from_(from), lanes_(std::move(lanes)) {}
    ~Taken();
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;

    size_t size() const { return lanes_.size(); }
    SideLane& operator[](size_t k) const { return *lanes_[k]; }

   private:
    SideLanes& from_;
    std::vector<std::unique_ptr<SideLane>> lanes_;
  };

  // With the GPU current.
  static absl::StatusOr<std::unique_ptr<SideLanes>> Create(size_t count,
                                                           const DeviceLimits& limits);

  // Of those that nobody has, at most so many.
  Taken Take(size_t most);

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<SideLane>> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_SIDE_LANES_H_
