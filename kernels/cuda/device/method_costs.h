// SPDX-License-Identifier: Apache-2.0

// Costs of methods as measured on an H100. Scaled by the ratios of the actual GPU
// (DeviceCore::Calibrated), they form the cost model of admission.
#ifndef CROUT_KERNELS_CUDA_DEVICE_METHOD_COSTS_H_
#define CROUT_KERNELS_CUDA_DEVICE_METHOD_COSTS_H_

#include <cstdint>

#include "kernels/dtype.h"

namespace crout::cuda {

// Seconds of `pcm` and `pcmpp` with the default block size.
double PredictPcmSeconds(DType dtype, int64_t n);

// Seconds of `crout_lu` with its panels on clusters or on a grid.
double PredictCroutLuSeconds(DType dtype, int64_t n, bool clusters);

// Seconds of `block_lu`.
double PredictBlockLuSeconds(DType dtype, int64_t n);

// Seconds of `gauss_jordan` with nrhs right-hand sides.
double PredictGaussJordanSeconds(DType dtype, int64_t n, int64_t nrhs);

// Seconds of `crout_solve` with a prepared factor.
double PredictCroutSolveSeconds(DType dtype, int64_t n, int64_t nrhs);

// Seconds of cusolverDnXgetrf for an n x n matrix. float32 takes as long as float64, because panel
// latency bounds both. Complex types take longer only for their arithmetic.
double PredictGetrfSeconds(DType dtype, int64_t n);

// Seconds of cusolverDnXgetrs.
double PredictGetrsSeconds(DType dtype, int64_t n, int64_t nrhs);

// Seconds of the solver `trsm`: a permutation and two cublas?trsm. Faster than cusolverDnXgetrs for
// every size measured.
double PredictTrsmSeconds(DType dtype, int64_t n, int64_t nrhs);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_METHOD_COSTS_H_
