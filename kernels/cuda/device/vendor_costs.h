// What the vendor's routines cost, as measured on an H100: with the ratios of the GPU at hand
// (DeviceCore::Calibrated) the cost model of admission.
#ifndef CROUT_KERNELS_CUDA_DEVICE_VENDOR_COSTS_H_
#define CROUT_KERNELS_CUDA_DEVICE_VENDOR_COSTS_H_

#include <cstdint>

#include "kernels/dtype.h"

namespace crout::cuda {

// Seconds of cusolverDnXgetrf for an n x n matrix. Float32 takes the same, since both are bound by
// the latency of the panels, and complex types take more for their arithmetic alone.
double PredictGetrfSeconds(DType dtype, int64_t n);

// Seconds of cusolverDnXgetrs.
double PredictGetrsSeconds(DType dtype, int64_t n, int64_t nrhs);

// Seconds of the solver `trsm`: a permutation and two cublas?trsm. Less than cusolverDnXgetrs for
// every size measured.
double PredictTrsmSeconds(DType dtype, int64_t n, int64_t nrhs);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_VENDOR_COSTS_H_
