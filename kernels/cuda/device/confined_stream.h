// A stream that leaves part of the GPU to others.
#ifndef CROUT_KERNELS_CUDA_DEVICE_CONFINED_STREAM_H_
#define CROUT_KERNELS_CUDA_DEVICE_CONFINED_STREAM_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <optional>
#include <type_traits>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_handles.h"

namespace crout::cuda {

// Whatever runs on it stays off some of the current device's multiprocessors, together the place of
// one cluster: what runs elsewhere finds room there at once (a green context).
class ConfinedStream {
 public:
  // `spared`: multiprocessors; a multiple of 8. Nothing where the driver or the GPU has no such
  // partitions.
  static absl::StatusOr<std::optional<ConfinedStream>> Create(unsigned spared);

  cudaStream_t get() const { return stream_.get(); }

 private:
  using Context = std::unique_ptr<std::remove_pointer_t<CUgreenCtx>, decltype(&cuGreenCtxDestroy)>;

  ConfinedStream(Context context, Stream stream)
      : context_(std::move(context)), stream_(std::move(stream)) {}

  Context context_;  // outlives its streams
  Stream stream_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CONFINED_STREAM_H_
