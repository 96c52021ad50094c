// Sparse LU by NVIDIA's cuDSS, in its deterministic mode.
#ifndef CROUT_KERNELS_CUDA_CUDSS_CUDSS_H_
#define CROUT_KERNELS_CUDA_CUDSS_CUDSS_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cudss/factors.h"
#include "kernels/cuda/cudss/handle.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/matrix.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/sparse_view.h"
#include "kernels/stop_requested.h"

namespace crout::cuda {

// Bytes of a factor's block: A by rows, and what cuDSS will take as far as the analysis
// foresees its fill-in, since it says so itself only when it has analysed the matrix again.
size_t CudssFactorBytes(const Analysis& analysis, DType dtype);

// Factors a, in device memory, into `factor`, whose block was allocated and is otherwise empty:
// with cuDSS's own ordering, or that of `last`, a factor by the same analysis and of this type, or
// null; and with its matching and scaling where the analysis has one. Everything that cuDSS has of
// the device's memory lies in the block. `stop` is asked between its phases. Blocks until the
// device is done.
// As SparseLu::Factor; RESOURCE_EXHAUSTED: the block is too small, and factor.wanted says what is
// not. UNIMPLEMENTED for what cuDSS refuses to do.
// Pivots that are too small, which those of a singular matrix are, are made larger and counted.
// cuDSS tells neither growth (0) nor interchanges, nor which pivots it changed.
absl::StatusOr<NumericSummary> FactorCudss(Context& context, CudssHandle& handle,
                                           const Analysis& analysis, const AnySparse& a,
                                           DType dtype, CudssFactor* last, CudssFactor& factor,
                                           StopRequested stop);

// Enqueues b := op(A)^-1 b, b being n x k of the factor's type, column by column, without
// refinement; workspace: a column of b. What cuDSS does on a device follows one another there,
// whatever thread it is of. FAILED_PRECONDITION: nothing was factored.
absl::Status SolveCudss(Context& context, CudssFactor& factor, const Analysis& analysis, Op op,
                        const AnyMatrix& b, std::span<std::byte> workspace);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CUDSS_CUDSS_H_
