// SPDX-License-Identifier: Apache-2.0

// The interface between a program and libcrout_cuda.so, which contains the CUDA device.
//
// The program loads that library at its first request for a GPU instead of linking it:
// - If the CUDA libraries are missing, the program still starts and serves from the host.
// - libcublasLt alone needs 94 KB of static thread-local storage. If it were linked, every thread's
//   stack would lose that much, including threads of libraries that choose a smaller stack than the
//   system's default. A library loaded later has no such cost.
#ifndef CROUT_KERNELS_CUDA_DEVICE_PLUGIN_H_
#define CROUT_KERNELS_CUDA_DEVICE_PLUGIN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_device.h"

namespace crout::cuda {

// The symbol `kCudaPluginSymbol` that the library exports. Both sides come from the same build.
struct CudaPlugin {
  int (*count_devices)();
  absl::Status (*check_devices)();
  absl::StatusOr<std::unique_ptr<Device>> (*make_device)(int ordinal, const Options& options);
};

inline constexpr char kCudaPluginFile[] = "libcrout_cuda.so";
inline constexpr char kCudaPluginSymbol[] = "crout_cuda_plugin";

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_PLUGIN_H_
