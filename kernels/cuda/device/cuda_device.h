// NVIDIA GPUs as devices. This header needs no CUDA header: the daemon includes it wherever the
// build has CUDA support (CROUT_HAVE_CUDA).
#ifndef CROUT_KERNELS_CUDA_DEVICE_CUDA_DEVICE_H_
#define CROUT_KERNELS_CUDA_DEVICE_CUDA_DEVICE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_limits.h"
#include "kernels/device.h"

namespace crout::cuda {

struct Options {
  // Jobs that the device is meant to run side by side: DeviceInfo::parallelism.
  int streams = 8;
  // What jobs and factors may use of the GPU's memory: so many bytes, or, for 0, a share. Freed
  // blocks are kept for the next job within the same bound, whatever their size, instead of going
  // back to the driver: cudaMalloc and cudaFree wait for the whole device.
  size_t memory_bytes = 0;
  double memory_fraction = 0.9;
  size_t max_cached_staging_bytes = size_t{1} << 30;
  // Staging of uploads: pinned memory of upload_blocks * upload_block_bytes, taken at start and
  // shared by all uploads, of which each holds at most blocks_per_upload.
  size_t upload_block_bytes = size_t{4} << 20;
  int upload_blocks = 32;
  int blocks_per_upload = 8;
  // Costs are measured with the first context, or taken from a file in `state_directory`
  // (cuda_costs.h); without it they are an H100's. `log` is told where they come from.
  bool calibrate = false;
  std::string state_directory;
  std::function<void(const std::string&)> log;
  CudaLimits limits;
};

// GPUs that this process can use. 0 without a GPU, its driver or the CUDA libraries; never an
// error.
int CountCudaDevices();

// Why there is none: UNAVAILABLE where the CUDA libraries are absent or cannot be loaded, NOT_FOUND
// without a driver or a GPU. OK where there is one. Names no directory.
absl::Status CheckCudaDevices();

// The GPU with the driver's index `ordinal`, named "cuda:<ordinal>". Takes its context, staging
// memory and vendor libraries now (about a second), so that jobs find them warm. Variables of the
// environment that change the vendor's precision are unset (vendor_environment.h): call it before
// other threads read the environment. INVALID_ARGUMENT for options that make no sense, NOT_FOUND
// where there is no such GPU, UNAVAILABLE where it does not answer or the CUDA libraries are
// absent, RESOURCE_EXHAUSTED where memory is short.
absl::StatusOr<std::unique_ptr<Device>> MakeDevice(int ordinal, const Options& options);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CUDA_DEVICE_H_
