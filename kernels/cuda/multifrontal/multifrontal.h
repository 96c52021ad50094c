// SPDX-License-Identifier: Apache-2.0

// Multifrontal sparse LU on a GPU: numeric factorization, and solves with its factors.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_MULTIFRONTAL_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_MULTIFRONTAL_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/matrix.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/sparse_view.h"
#include "kernels/stop_requested.h"

namespace crout::cuda {

// Bytes of device memory for the calls below, for a solve with k > 0 right-hand sides. If the
// workspace of a factorization exceeds `most`, subtrees are processed one after the other
// (traversal.h), in more steps. The result is then at most `most`, or the minimum over all
// traversals if that is larger.
size_t MultifrontalFactorBytes(const Analysis& analysis, DType dtype);
size_t MultifrontalWorkspaceBytes(const LuPanelKernels& kernels, const Analysis& analysis,
                                  DType dtype, size_t most = std::numeric_limits<size_t>::max());
size_t MultifrontalSolveWorkspaceBytes(const Analysis& analysis, DType dtype, int64_t k);

// Factors `a`, in device memory, into `factor`, like host::FactorMultifrontal: the same fronts in
// the same layout, followed by the data that solves read (factor_block.h).
//
// Works level by level from the leaves. The contributions of two stages exist at a time, or fewer
// if `workspace` is too small for that; a stage is one level, or successive levels of small fronts.
// The fronts of a level form irregular batches (Abdelfattah et al.); if the largest ones are few,
// crout_lu factors them one by one. If one of those has a pivot that is too small, the whole
// factorization is repeated without crout_lu.
//
// The bits are the same each time, whatever the workspace. `stop` is checked between batches, at
// most two stages ahead of the GPU. Blocks until the device is done, and allocates no device
// memory. `last`: null, or a factor of this analysis and type in memory that the device can read.
// The indices are then copied from it instead of being sent; it is not modified.
absl::StatusOr<NumericSummary> FactorMultifrontal(
    Context& context, const LuPanelKernels& kernels, const Analysis& analysis, const AnySparse& a,
    DType dtype, const std::byte* last, std::span<std::byte> factor, std::span<std::byte> workspace,
    StopRequested stop, std::vector<int32_t>* postponable);

// Enqueues b := op(A)^-1 b, with b of n x k in the factor's type `dtype`. Includes permutations and
// scales, but no refinement. The Schur complement of kept unknowns is treated as the identity. The
// bits are the same each time, and those of a column do not depend on the values of other columns.
// `scale`: false if the caller applies the scales.
absl::Status SolveMultifrontal(Context& context, const Analysis& analysis, const std::byte* factor,
                               Op op, const AnyMatrix& b, std::span<std::byte> workspace,
                               bool scale);

// Returns det A; 0 for a singular factor (info > 0). Blocks.
absl::StatusOr<LogDeterminant> MultifrontalDeterminant(Context& context, const Analysis& analysis,
                                                       const NumericSummary& summary,
                                                       const std::byte* factor, DType dtype);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_MULTIFRONTAL_H_
