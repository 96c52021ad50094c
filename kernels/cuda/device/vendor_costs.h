// What the vendor's routines cost, as measured on an H100: with the ratios of the GPU at hand
// (DeviceCore::Calibrated) the cost model of admission.
#ifndef CROUT_KERNELS_CUDA_DEVICE_VENDOR_COSTS_H_
#define CROUT_KERNELS_CUDA_DEVICE_VENDOR_COSTS_H_

#include <cstdint>

namespace crout::cuda {

// Seconds of cusolverDnXgetrf for an n x n matrix. Float32 takes the same: both are bound by the
// latency of the panels.
double PredictGetrfSeconds(int64_t n);

// Seconds of cusolverDnXgetrs.
double PredictGetrsSeconds(int64_t n, int64_t nrhs);

// Seconds of the solver `trsm`: a permutation and two cublasDtrsm. Less than cusolverDnXgetrs for
// every size measured.
double PredictTrsmSeconds(int64_t n, int64_t nrhs);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_VENDOR_COSTS_H_
