// SPDX-License-Identifier: Apache-2.0

// Inspects the fronts once all are factored.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_INSPECTION_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_INSPECTION_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/cuda/multifrontal/assembly.h"
#include "kernels/cuda/multifrontal/front.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// Number of columns from which on a front's interchanges are too many for a warp with two of them
// per lane.
inline constexpr int32_t kLargeForPermutations = 64;

// Indexed by position, except `large`; in device memory.
template <class T>
struct PivotRecord {
  const int64_t* made;    // stored by the kernels that factor fronts: 1-based within the front
  int32_t* interchanges;  // MultifrontalLayout::pivots
  // Row k of the front's L U was row permutation[k] of the front; both are counted from its first
  // row.
  int32_t* permutation;
  T* diagonal;           // diagonal of U
  const int32_t* large;  // fronts with at least kLargeForPermutations columns, in any order
  int large_count;
};

// Enqueues the computation of `record` and of the report's counts, for the first `fronts` fronts,
// which eliminate the first `positions` positions. These are all fronts, or all except the front of
// kept unknowns. `border`: Analysis::border.
template <class T>
cudaError_t LaunchInspectPivots(const FrontTree& tree, int fronts, int64_t positions,
                                const int32_t* border, const T* factor, const MinPivots<T>& bounds,
                                const PivotRecord<T>& record, NumericReport* report,
                                cudaStream_t stream);

// Columns of L21 with an entry of modulus above `most` are marked in `pivot_flags`, by position,
// unless they already have a mark. Only rows that are eliminated count: the first `positions`.
// `border`: Analysis::border.
struct MultiplierLimit {
  double most;
  int64_t positions;
  const int32_t* border;
  uint8_t* pivot_flags;
};
inline constexpr uint8_t kUnacceptable = 3;  // in addition to MinPivots' two values

// Enqueues report->largest, unacceptable and not_finite, for the first `entries` elements of the
// factor.
template <class T>
cudaError_t LaunchInspectFronts(const FrontTree& tree, const T* factor, int64_t entries,
                                const MultiplierLimit& acceptable, NumericReport* report,
                                cudaStream_t stream);

// Enqueues report->asymmetric: whether a real `a` differs from its transpose in any bit, except the
// sign of zeros.
cudaError_t LaunchCompareTransposed(const AnySparse& a, NumericReport* report, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_INSPECTION_H_
