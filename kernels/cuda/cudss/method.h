// cuDSS in the CUDA device's catalogue.
#ifndef CROUT_KERNELS_CUDA_CUDSS_METHOD_H_
#define CROUT_KERNELS_CUDA_CUDSS_METHOD_H_

#include "kernels/catalogue.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/memory.h"

namespace crout::cuda {

// "cudss": LU of sparse matrices by NVIDIA's library (cudss.h), and solves with such factors, whose
// blocks come from `memory`. Where the library is not found the catalogue says so instead, and what
// to install. Of the current device.
void AddCudss(DeviceCore& core, MemoryResource& memory, Catalogue& catalogue);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CUDSS_METHOD_H_
