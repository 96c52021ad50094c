// SPDX-License-Identifier: Apache-2.0

// LAPACK's laswp for a whole factorization, as one gather or scatter instead of n swaps.
#ifndef CROUT_KERNELS_CUDA_OPS_PERMUTE_ROWS_H_
#define CROUT_KERNELS_CUDA_OPS_PERMUTE_ROWS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/matrix.h"

namespace crout::cuda {

// Enqueues p[b * rows + i] := the 0-based row that the interchanges ipiv[b * block..n) (1-based,
// applied first to last) bring to row i < rows, for every b with b * block < n.
cudaError_t LaunchTraceInterchanges(const int64_t* ipiv, int64_t n, int64_t rows, int64_t block,
                                    int64_t* p, cudaStream_t stream);

// Enqueues p[i] := the row that all n interchanges bring to row i of n rows.
cudaError_t LaunchTracePermutation(const int64_t* ipiv, int64_t n, int64_t* p, cudaStream_t stream);

// Enqueues out[i, :] := in[p[i], :] or, if `inverse`, out[p[i], :] := in[i, :]. Both have the same
// type and shape and do not overlap.
cudaError_t LaunchPermuteRows(const AnyMatrix& in, const int64_t* p, bool inverse,
                              const AnyMatrix& out, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_PERMUTE_ROWS_H_
