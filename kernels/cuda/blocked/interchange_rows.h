// SPDX-License-Identifier: Apache-2.0

// LAPACK's laswp for some of a factorization's interchanges.
#ifndef CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGE_ROWS_H_
#define CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGE_ROWS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <limits>

#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// A run is a sequence of row interchanges of consecutive rows k, k + 1 and so on. A plan is the
// permutation of rows that they form together, in device memory. Rows are counted from the run's
// first row.
struct InterchangePlan {
  static constexpr int kMaxRows = 512;

  int row_from[kMaxRows];    // row i receives row row_from[i]; i itself beyond the run's rows
  int other[kMaxRows];       // rows below the run that change as well; -1 if there is none
  int other_from[kMaxRows];  // row other[i] receives row other_from[i]
};

// Enqueues the interchanges ipiv[begin..end) (1-based, row k with row ipiv[k]) of the rows of `a`,
// in order. `plan` is written and read on the stream. No-op once `control` has halted.
template <class T>
cudaError_t LaunchInterchangeRows(const MatrixView<T>& a, const int64_t* ipiv, int64_t begin,
                                  int64_t end, InterchangePlan* plan, const LuControl<T>* control,
                                  cudaStream_t stream);

inline constexpr unsigned kAnyBlocks = std::numeric_limits<unsigned>::max();

// Enqueues the interchanges of a plan of `count` rows, the first of which is row 0 of `a`. Uses at
// most `max_blocks` blocks of threads: with few, kernels of other streams can run beside them.
// No-op once `control` has halted.
template <class T>
cudaError_t LaunchInterchangeRows(const MatrixView<T>& a, const InterchangePlan* plan,
                                  int64_t count, const LuControl<T>* control, cudaStream_t stream,
                                  unsigned max_blocks = kAnyBlocks);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGE_ROWS_H_
