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

// Kernels of this stream leave some of the current device's multiprocessors free, enough of them
// for one cluster: a kernel of another stream finds room there at once. It is a stream of a green
// context that has the other multiprocessors.
class ConfinedStream {
 public:
  // `spared`: how many multiprocessors to leave free; a multiple of 8. Returns nullopt where the
  // driver or the GPU cannot be partitioned so.
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
