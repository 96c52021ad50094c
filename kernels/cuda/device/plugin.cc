// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/plugin.h"

extern "C" __attribute__((visibility("default")))
const crout::cuda::CudaPlugin crout_cuda_plugin = {
    crout::cuda::CountCudaDevices, crout::cuda::CheckCudaDevices, crout::cuda::MakeDevice};
