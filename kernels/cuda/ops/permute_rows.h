// LAPACK's laswp for a whole factorization, by one gather or scatter instead of n swaps.
#ifndef CROUT_KERNELS_CUDA_OPS_PERMUTE_ROWS_H_
#define CROUT_KERNELS_CUDA_OPS_PERMUTE_ROWS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/matrix.h"

namespace crout::cuda {

// Enqueues p[b * rows + i] := the row, 0-based, of `rows` that the interchanges ipiv[b * block..n)
// (1-based, applied first to last) bring to row i, for every b with b * block < n.
cudaError_t LaunchTraceInterchanges(const int64_t* ipiv, int64_t n, int64_t rows, int64_t block,
                                    int64_t* p, cudaStream_t stream);

// The same for all of n rows: p[i], by all n interchanges.
cudaError_t LaunchTracePermutation(const int64_t* ipiv, int64_t n, int64_t* p, cudaStream_t stream);

// Enqueues out[i, :] := in[p[i], :], or, inverse, out[p[i], :] := in[i, :]. Same type and shape, no
// overlap.
cudaError_t LaunchPermuteRows(const AnyMatrix& in, const int64_t* p, bool inverse,
                              const AnyMatrix& out, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_PERMUTE_ROWS_H_
