// The boundary between a program and libcrout_cuda.so, which holds the CUDA device.
//
// The program loads that library when it is first asked for a GPU, rather than linking it:
//  - where the CUDA libraries are absent the program still starts, and serves from the host;
//  - libcublasLt alone asks for 94 KB of static thread-local storage. Linked to the program, that
//    comes off every thread's stack, those included that a library makes smaller than the system
//    does by default. Loaded later, it does not count.
#ifndef CROUT_KERNELS_CUDA_DEVICE_PLUGIN_H_
#define CROUT_KERNELS_CUDA_DEVICE_PLUGIN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_device.h"

namespace crout::cuda {

// What the library exports, as `kCudaPluginSymbol`. Both sides come from one build.
struct CudaPlugin {
  int (*count_devices)();
  absl::Status (*check_devices)();
  absl::StatusOr<std::unique_ptr<Device>> (*make_device)(int ordinal, const Options& options);
};

inline constexpr char kCudaPluginFile[] = "libcrout_cuda.so";
inline constexpr char kCudaPluginSymbol[] = "crout_cuda_plugin";

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_PLUGIN_H_
