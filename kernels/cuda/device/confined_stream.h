// SPDX-License-Identifier: Apache-2.0

// A stream that leaves part of the GPU free for other streams.
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

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CONFINED_STREAM_H_
