// SPDX-License-Identifier: Apache-2.0

// The published Gauss-Jordan elimination by stripes of rows, for comparison with ours.
#ifndef CROUT_TESTS_BENCH_DENSE_GPU_STRIPES_H_
#define CROUT_TESTS_BENCH_DENSE_GPU_STRIPES_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace crout {

// Solves A x = b for [A b], n x (n + 1) and row-major in device memory. Overwrites [A b] with [D
// y], where D is diagonal, and the device's `x` with D^-1 y. Follows E. Eyvazov, Gauss-Jordan
// Solver of Linear Equation Systems on GPU (CTU 2021), section 6: stripes of 32 rows with a stream
// each, blocks of 32 x 32 threads, two launches per pivot and stripe, no pivoting, and y := p - y
// (a_pp / a_yp) for the pivot's row p and each other row y. Waits for the end. Returns the first
// error of CUDA.
cudaError_t SolveByStripes(double* ab, int64_t n, double* x);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_DENSE_GPU_STRIPES_H_
