// SPDX-License-Identifier: Apache-2.0

// GPU memory that another process can map through a file descriptor.
#ifndef CROUT_KERNELS_CUDA_DEVICE_SHAREABLE_MEMORY_H_
#define CROUT_KERNELS_CUDA_DEVICE_SHAREABLE_MEMORY_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/device.h"

namespace crout::cuda {

// Returns the UUID of a GPU, of 16 bytes. Empty if the driver is older than the toolkit.
absl::StatusOr<std::string> UuidOf(int ordinal);

// Implements Device::AllocateShareable for the GPU of `core`, which must be current. The driver
// counts the references to the memory: the end of one process does not affect the others.
absl::StatusOr<std::unique_ptr<ShareableMemory>> MakeShareableMemory(DeviceCore& core,
                                                                     size_t bytes);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_SHAREABLE_MEMORY_H_
