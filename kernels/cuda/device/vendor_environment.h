// SPDX-License-Identifier: Apache-2.0

// Keeps the environment from changing the vendor's arithmetic.
#ifndef CROUT_KERNELS_CUDA_DEVICE_VENDOR_ENVIRONMENT_H_
#define CROUT_KERNELS_CUDA_DEVICE_VENDOR_ENVIRONMENT_H_

namespace crout::cuda {

// Environment variables that make cuBLAS, and cuSOLVER through it, compute in another precision
// than requested. They would affect a factor and the residual that checks it alike.
inline constexpr const char* kPrecisionVariables[] = {
    "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_EMULATE_SINGLE_PRECISION",
    "CUBLAS_EMULATE_DOUBLE_PRECISION",
    "CUBLAS_EMULATION_STRATEGY",
    "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT",
};

// Unsets these variables. Call it before the libraries are loaded or their first handle is created.
// If no variable is set, it changes nothing and is safe in any thread. Otherwise no other thread
// may read the environment at the same time.
void ClearPrecisionVariables();

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_VENDOR_ENVIRONMENT_H_
