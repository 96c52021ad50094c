// Gauss-Jordan elimination by stripes of rows, as its source has it: to be measured beside ours.
#ifndef CROUT_TESTS_BENCH_GPU_STRIPES_H_
#define CROUT_TESTS_BENCH_GPU_STRIPES_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace crout {

// Solves [A b], n x (n + 1) by rows in device memory, which becomes [D y] with a diagonal D, and
// leaves x = D^-1 y in `x`. Stripes of 32 rows, a stream for each, blocks of 32 x 32 threads, two
// launches for each pivot and stripe; no pivoting, and y := p - y (a_pp / a_yp) for the row p of a
// pivot and each other row y (E. Eyvazov, Gauss-Jordan Solver of Linear Equation Systems on GPU,
// CTU 2021, section 6). Blocks until it is done.
cudaError_t SolveByStripes(double* ab, int64_t n, double* x);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_GPU_STRIPES_H_
