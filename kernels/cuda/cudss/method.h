// SPDX-License-Identifier: Apache-2.0

// Adds cuDSS to the CUDA device's catalogue.
#ifndef CROUT_KERNELS_CUDA_CUDSS_METHOD_H_
#define CROUT_KERNELS_CUDA_CUDSS_METHOD_H_

#include "kernels/catalogue.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/memory.h"

namespace crout::cuda {

// Adds `cudss`: sparse LU by NVIDIA's library (cudss.h), and solves with its factors, whose blocks
// come from `memory`. If the library is missing, the catalogue records `cudss` as absent with the
// package to install. Uses the current device.
void AddCudss(DeviceCore& core, MemoryResource& memory, Catalogue& catalogue);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CUDSS_METHOD_H_
