// What the environment may not change about the vendor's arithmetic.
#ifndef CROUT_KERNELS_CUDA_DEVICE_VENDOR_ENVIRONMENT_H_
#define CROUT_KERNELS_CUDA_DEVICE_VENDOR_ENVIRONMENT_H_

namespace crout::cuda {

// The variables by which cuBLAS, and cuSOLVER through it, compute in another precision than they
// are asked for. They would change a factor and the residual that is to judge it alike.
inline constexpr const char* kPrecisionVariables[] = {
    "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_EMULATE_SINGLE_PRECISION",
    "CUBLAS_EMULATE_DOUBLE_PRECISION",
    "CUBLAS_EMULATION_STRATEGY",
    "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT",
};

// Takes them out of the process's environment. Before the libraries are loaded, or their first
// handle is made; changes nothing where none is set, and then may run beside anything. Otherwise
// not beside a thread that reads the environment.
void ClearPrecisionVariables();

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_VENDOR_ENVIRONMENT_H_
