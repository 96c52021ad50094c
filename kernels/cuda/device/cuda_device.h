// SPDX-License-Identifier: Apache-2.0

// NVIDIA GPUs as devices. Includes no CUDA header, so the daemon can include it in every build with
// CUDA support (CROUT_HAVE_CUDA).
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
  // Number of jobs that the device should run concurrently: DeviceInfo::parallelism.
  int streams = 8;
  // GPU memory available to jobs and factors: `memory_bytes`, or, if that is 0, a fraction of the
  // GPU's memory. Freed blocks of any size stay in the pool within the same bound instead of
  // returning to the driver, because cudaMalloc and cudaFree wait for the whole device.
  size_t memory_bytes = 0;
  double memory_fraction = 0.9;
  size_t max_cached_staging_bytes = size_t{1} << 30;
  // Staging of uploads: pinned memory of upload_blocks * upload_block_bytes, allocated at start and
  // shared by all uploads. Each upload holds at most blocks_per_upload blocks.
  size_t upload_block_bytes = size_t{4} << 20;
  int upload_blocks = 32;
  int blocks_per_upload = 8;
  // With `calibrate`, costs are measured with the first context, or read from a file in
  // `state_directory` (start_up.h). Without it, they are an H100's. `log` receives a line about
  // their source.
  bool calibrate = false;
  std::string state_directory;
  std::function<void(const std::string&)> log;
  CudaLimits limits;
};

// Returns the number of GPUs that this process can use: 0 without a GPU, its driver or the CUDA
// libraries. Never fails.
int CountCudaDevices();

// Returns OK if there is a usable GPU. UNAVAILABLE if the CUDA libraries are missing or cannot be
// loaded, NOT_FOUND without a driver or a GPU. Messages name no directory.
absl::Status CheckCudaDevices();

// Creates the device for the GPU with the driver's index `ordinal`, named "cuda:<ordinal>". Creates
// its context, staging memory and vendor libraries now (about a second), so that the first jobs are
// not slower. Unsets environment variables that change the vendor's precision
// (vendor_environment.h), so call it before other threads read the environment. Returns
// INVALID_ARGUMENT for invalid options, NOT_FOUND if there is no such GPU, UNAVAILABLE if it does
// not respond or the CUDA libraries are missing, and RESOURCE_EXHAUSTED if memory is short.
absl::StatusOr<std::unique_ptr<Device>> MakeDevice(int ordinal, const Options& options);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CUDA_DEVICE_H_
