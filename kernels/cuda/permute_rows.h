// LAPACK's laswp for a whole factorization, by one gather or scatter instead of n swaps.
#ifndef CROUT_KERNELS_CUDA_PERMUTE_ROWS_H_
#define CROUT_KERNELS_CUDA_PERMUTE_ROWS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/matrix.h"

namespace crout {

// Enqueues p[i] := the row, 0-based, that the interchanges ipiv[0..n) (1-based, applied first to
// last) bring to row i.
cudaError_t LaunchTracePermutation(const int64_t* ipiv, int64_t n, int64_t* p, cudaStream_t stream);

// Enqueues out[i, :] := in[p[i], :], or, inverse, out[p[i], :] := in[i, :]. Same type and shape, no
// overlap.
cudaError_t LaunchPermuteRows(const AnyMatrix& in, const int64_t* p, bool inverse,
                              const AnyMatrix& out, cudaStream_t stream);

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_PERMUTE_ROWS_H_
