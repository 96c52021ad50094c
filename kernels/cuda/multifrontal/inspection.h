// What became of the fronts, once all are factored.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_INSPECTION_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_INSPECTION_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/cuda/multifrontal/assembly.h"
#include "kernels/cuda/multifrontal/front.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// Columns of fronts whose interchanges are too many for a warp with two of them in each lane.
inline constexpr int32_t kLargeForPermutations = 64;

// By position, but for `large`; in device memory.
template <class T>
struct PivotRecord {
  const int64_t* made;    // as the kernels that factor fronts leave them: 1-based in the front
  int32_t* interchanges;  // MultifrontalLayout::pivots
  int32_t* permutation;   // row k of the front's L U, counted from its first, was this row of it
  T* diagonal;            // of U
  const int32_t* large;   // the fronts of that many columns, in any order
  int large_count;
};

// Enqueues what `record` gets, and the counts of the report, for the first `fronts` fronts, which
// eliminate the first `positions`: all of them, or all that are not kept. `border`:
// Analysis::border.
template <class T>
cudaError_t LaunchInspectPivots(const FrontTree& tree, int fronts, int64_t positions,
                                const int32_t* border, const T* factor,
                                const LeastPivots<T>& bounds, const PivotRecord<T>& record,
                                NumericReport* report, cudaStream_t stream);

// Columns of L21 with an entry of modulus above `most`, in rows that are eliminated (the first
// `positions`; `border`: Analysis::border), are marked in `raised`, by position, where nothing is
// there yet.
struct AcceptableColumns {
  double most;
  int64_t positions;
  const int32_t* border;
  uint8_t* raised;
};
inline constexpr uint8_t kUnacceptable = 3;  // beside LeastPivots' two

// Enqueues report->largest, unacceptable and not_finite, for the first `entries` elements of the
// factor.
template <class T>
cudaError_t LaunchInspectFronts(const FrontTree& tree, const T* factor, int64_t entries,
                                const AcceptableColumns& acceptable, NumericReport* report,
                                cudaStream_t stream);

// Enqueues report->asymmetric: whether a, where it is real, is not equal to its transpose, to the
// bit but for the sign of zeros.
cudaError_t LaunchCompareTransposed(const AnySparse& a, NumericReport* report, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_INSPECTION_H_
