// What fronts start with: A's own entries, and what their children left.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_ASSEMBLY_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_ASSEMBLY_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/batch_member.h"
#include "kernels/cuda/multifrontal/front.h"
#include "kernels/dtype.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// What a numeric factorization finds out, in device memory. All zero at its start.
struct NumericReport {
  unsigned long long max_abs;  // bits of the largest modulus of B's entries
  unsigned long long largest;  // of U's
  int32_t perturbed;
  int32_t interchanges;
  int32_t negative;
  int32_t not_finite;      // whether L or U holds a NaN or Inf
  int32_t too_small;       // whether a pivot that no kernel was to raise should have been
  int32_t unacceptable;    // whether a multiplier in L21 is above LargestMultiplier
  int32_t asymmetric;      // whether A differs from its transpose
  uint32_t least_inverse;  // 0, or ~(1 + position) of the first column with nothing but zeros
};

// The scales of A's rows and columns, by A's indices; null where there are none.
struct FrontScales {
  const double* row = nullptr;
  const double* column = nullptr;
};

// Where A's rows and columns are, and which front eliminates a position; in device memory, n each.
struct FrontPositions {
  int32_t* of_row = nullptr;
  int32_t* of_column = nullptr;
  int32_t* front = nullptr;  // by position
};

// Enqueues `to`, of Analysis::row_order and column_order.
cudaError_t LaunchPlacePositions(const FrontTree& tree, int64_t n, const int32_t* row_order,
                                 const int32_t* column_order, const FrontPositions& to,
                                 cudaStream_t stream);

// Enqueues place := Analysis::place_in_parent, of Analysis::border.
cudaError_t LaunchPlaceBorders(const FrontTree& tree, const int32_t* border, int32_t* place,
                               cudaStream_t stream);

// The other way round: enqueues border := Analysis::border.
cudaError_t LaunchNumberBorders(const FrontTree& tree, int32_t* border, cudaStream_t stream);

// Enqueues the entries of a, scaled and rounded to T once, to their places in the factor, which is
// zero. One that no front has a place for, as of another pattern than was analysed, is left out. T:
// real, or Complex, as a's are.
template <class T>
cudaError_t LaunchPutEntries(const FrontTree& tree, const FrontPositions& positions,
                             const int32_t* border, const AnySparse& a, const FrontScales& scales,
                             T* factor, cudaStream_t stream);

// PivotPerturbation of fronts.
struct PivotBounds {
  double with_border;
  double without;
};

// Rows of unknowns that are kept, in which no pivot can be: those whose position, `of_row` of A's
// index, is `first` or later. Null: none.
struct KeptRows {
  const int32_t* of_row = nullptr;
  int64_t first = 0;
};

// Enqueues least[k] := the least size of position k's pivot, and report->max_abs.
template <class T>
cudaError_t LaunchLeastPivots(const FrontTree& tree, const AnySparse& a, const FrontScales& scales,
                              const int32_t* column_order, const KeptRows& kept, PivotBounds bounds,
                              RealPart<T>* least, NumericReport* report, cudaStream_t stream);

// The arrays of an Analysis that say what its fronts are, and of a Traversal that says where their
// contributions wait, in device memory.
struct FrontArrays {
  const int64_t* factor_start = nullptr;
  const int64_t* contribution_start = nullptr;
  const int64_t* border_start = nullptr;
  const int64_t* shift = nullptr;  // TraversalStep::shift, by `step_start`
  const int32_t* first_position = nullptr;
  const int32_t* parent = nullptr;
  const int32_t* child_start = nullptr;
  const int32_t* order = nullptr;       // Traversal::order
  const int32_t* step_start = nullptr;  // of the order, ascending
  int fronts = 0;
  int steps = 0;
};

// Enqueues fronts := all fronts, as MakeFront has them.
cudaError_t LaunchPackFronts(const FrontArrays& arrays, Front* fronts, cudaStream_t stream);

// The parts of fronts as members of irregular batches, by front: F11, F21 and F12 of the factor
// (first_diagonal is the front's first position), F22 of the contributions.
struct FrontMembers {
  BatchMember* f11 = nullptr;
  BatchMember* f21 = nullptr;
  BatchMember* f12 = nullptr;
  BatchMember* f22 = nullptr;
};
cudaError_t LaunchPlaceMembers(const FrontTree& tree, const FrontMembers& members,
                               cudaStream_t stream);

// Columns of a front that a block of threads assembles.
inline constexpr int kColumnsOfExtendAdd = 32;

// Enqueues the extend-add of the fronts in `set`: to each, all that its children left in
// `contributions`, child after child, without atomics: always the same bits.
template <class T>
cudaError_t LaunchExtendAdd(const FrontTree& tree, const FrontSet& set, T* factor, T* contributions,
                            cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_ASSEMBLY_H_
