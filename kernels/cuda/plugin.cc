#include "kernels/cuda/plugin.h"

extern "C" __attribute__((visibility("default"))) const crout::CudaPlugin crout_cuda_plugin = {
    crout::CountCudaDevices, crout::CheckCudaDevices, crout::MakeCudaDevice};
