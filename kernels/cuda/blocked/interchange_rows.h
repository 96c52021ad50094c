// LAPACK's laswp for some of a factorization's interchanges.
#ifndef CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGE_ROWS_H_
#define CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGE_ROWS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <limits>

#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// A run is a number of row interchanges that follow each other, of rows k, k + 1, ...; this is the
// permutation of rows that they make together, in device memory. Rows are counted from the run's
// first.
struct InterchangePlan {
  static constexpr int kMaxRows = 512;

  int row_from[kMaxRows];    // row i becomes what row row_from[i] was; i itself past the run's rows
  int other[kMaxRows];       // rows below the run's that change as well; -1 where there is none
  int other_from[kMaxRows];  // row other[i] becomes what row other_from[i] was
};

// Enqueues the interchanges ipiv[begin..end) (1-based, row k with row ipiv[k]) of the rows of `a`,
// in their order. `plan` is written and read on the stream. Nothing once `control` has halted.
template <class T>
cudaError_t LaunchInterchangeRows(const MatrixView<T>& a, const int64_t* ipiv, int64_t begin,
                                  int64_t end, InterchangePlan* plan, const LuControl<T>* control,
                                  cudaStream_t stream);

inline constexpr unsigned kAnyBlocks = std::numeric_limits<unsigned>::max();

// Enqueues the interchanges of a plan of `count` rows, the first of which is row 0 of `a`, by at
// most `most_blocks` blocks of threads: with few, kernels of other streams have room beside them.
// Nothing once `control` has halted.
template <class T>
cudaError_t LaunchInterchangeRows(const MatrixView<T>& a, const InterchangePlan* plan,
                                  int64_t count, const LuControl<T>* control, cudaStream_t stream,
                                  unsigned most_blocks = kAnyBlocks);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGE_ROWS_H_
