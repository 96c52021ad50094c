// SPDX-License-Identifier: Apache-2.0

// Assembles fronts from A's entries and the contributions of their children.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_ASSEMBLY_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_ASSEMBLY_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/batch_member.h"
#include "kernels/cuda/multifrontal/front.h"
#include "kernels/dtype.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// Results that kernels collect during a numeric factorization, in device memory. Initially zero.
struct NumericReport {
  unsigned long long max_abs;  // bits of the largest modulus of B's entries (B is the scaled A)
  unsigned long long largest;  // the same of U's entries
  int32_t perturbed;
  int32_t interchanges;
  int32_t negative;
  int32_t not_finite;      // whether L or U contains a NaN or Inf
  int32_t too_small;       // whether a pivot below its bound was left unperturbed
  int32_t unacceptable;    // whether a multiplier in L21 exceeds LargestMultiplier
  int32_t asymmetric;      // whether A differs from its transpose
  uint32_t least_inverse;  // 0, or ~(1 + position) of the first column that contains only zeros
};

// The scales of A's rows and columns, by A's indices; null if there are none.
struct FrontScales {
  const double* row = nullptr;
  const double* column = nullptr;
};

// The positions of A's rows and columns, and the front that eliminates each position; n elements
// each, in device memory.
struct FrontPositions {
  int32_t* of_row = nullptr;
  int32_t* of_column = nullptr;
  int32_t* front = nullptr;  // by position
};

// Enqueues the computation of `to` from Analysis::row_order and column_order.
cudaError_t LaunchPlacePositions(const FrontTree& tree, int64_t n, const int32_t* row_order,
                                 const int32_t* column_order, const FrontPositions& to,
                                 cudaStream_t stream);

// Enqueues place := Analysis::place_in_parent, computed from Analysis::border.
cudaError_t LaunchPlaceBorders(const FrontTree& tree, const int32_t* border, int32_t* place,
                               cudaStream_t stream);

// The inverse of LaunchPlaceBorders: enqueues border := Analysis::border.
cudaError_t LaunchNumberBorders(const FrontTree& tree, int32_t* border, cudaStream_t stream);

// Enqueues the stores of a's entries in the factor, which must be zero. Each entry is scaled and
// then rounded to T once. Entries outside of the analyzed pattern are skipped. T is real or
// Complex, like a's entries.
template <class T>
cudaError_t LaunchPutEntries(const FrontTree& tree, const FrontPositions& positions,
                             const int32_t* border, const AnySparse& a, const FrontScales& scales,
                             T* factor, cudaStream_t stream);

// PivotPerturbation of fronts with and without a border.
struct PivotBounds {
  double with_border;
  double without;
};

// Rows of kept unknowns, which cannot contain pivots: those whose position, of_row[A's row index],
// is `first` or later. Null: none.
struct KeptRows {
  const int32_t* of_row = nullptr;
  int64_t first = 0;
};

// Enqueues least[k] := the lower bound of position k's pivot, and report->max_abs.
template <class T>
cudaError_t LaunchMinPivots(const FrontTree& tree, const AnySparse& a, const FrontScales& scales,
                            const int32_t* column_order, const KeptRows& kept, PivotBounds bounds,
                            RealPart<T>* least, NumericReport* report, cudaStream_t stream);

// The arrays of an Analysis that describe its fronts, and the arrays of a Traversal that place
// their contributions. In device memory.
struct FrontArrays {
  const int64_t* factor_start = nullptr;
  const int64_t* contribution_start = nullptr;
  const int64_t* border_start = nullptr;
  const int64_t* shift = nullptr;  // TraversalStep::shift, by index of `step_start`
  const int32_t* first_position = nullptr;
  const int32_t* parent = nullptr;
  const int32_t* child_start = nullptr;
  const int32_t* order = nullptr;       // Traversal::order
  const int32_t* step_start = nullptr;  // the steps' first indices in `order`, ascending
  int fronts = 0;
  int steps = 0;
};

// Enqueues fronts := the result of MakeFront for all fronts.
cudaError_t LaunchPackFronts(const FrontArrays& arrays, Front* fronts, cudaStream_t stream);

// The parts of fronts as members of irregular batches, indexed by front: F11, F21 and F12 of the
// factor (first_diagonal is the front's first position), and F22 of the contributions.
struct FrontMembers {
  BatchMember* f11 = nullptr;
  BatchMember* f21 = nullptr;
  BatchMember* f12 = nullptr;
  BatchMember* f22 = nullptr;
};
cudaError_t LaunchPlaceMembers(const FrontTree& tree, const FrontMembers& members,
                               cudaStream_t stream);

// Columns of a front that a block of threads assembles at a time.
inline constexpr int kColumnsOfExtendAdd = 32;

// Enqueues the extend-add of the fronts in `set`: adds the contributions of their children, child
// after child. Uses no atomics, so the bits are always the same.
template <class T>
cudaError_t LaunchExtendAdd(const FrontTree& tree, const FrontSet& set, T* factor, T* contributions,
                            cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_ASSEMBLY_H_
