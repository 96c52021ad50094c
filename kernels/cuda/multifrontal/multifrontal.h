// Multifrontal sparse LU on a GPU: the numeric phase, and solves with what it leaves.
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

// Device memory for the calls below; of a solve with k right-hand sides, k > 0. Where the workspace
// is more than `most`, subtrees are done one after the other (traversal.h), in more steps: `most`
// or less, or the least that any number of them takes.
size_t MultifrontalFactorBytes(const Analysis& analysis, DType dtype);
size_t MultifrontalWorkspaceBytes(const LuPanelKernels& kernels, const Analysis& analysis,
                                  DType dtype, size_t most = std::numeric_limits<size_t>::max());
size_t MultifrontalSolveWorkspaceBytes(const Analysis& analysis, DType dtype, int64_t k);

// Factors a, in device memory, as host::FactorMultifrontal does, into `factor`: the same fronts in
// the same layout, and behind them what solves read (factor_block.h). Level by level from the
// leaves, with the contributions of two stages at a time, each a level or successive levels of
// small fronts, or as far as `workspace` has room: the fronts of a level are irregular batches
// (Abdelfattah et al.), the largest of them, where they are few, factored one by one by crout_lu.
// Should one of those have a pivot that is too small, everything is done again without it. The same
// bits each time, whatever the workspace. `stop` is asked between batches, no more than two stages
// ahead of the GPU. Blocks until the device is done; nothing is allocated on it. `last`: null, or a
// factor by this analysis and of this type in memory that the device reads, from which the indices
// are taken that else are sent; it stays as it is.
absl::StatusOr<NumericSummary> FactorMultifrontal(
    Context& context, const LuPanelKernels& kernels, const Analysis& analysis, const AnySparse& a,
    DType dtype, const std::byte* last, std::span<std::byte> factor, std::span<std::byte> workspace,
    StopRequested stop, std::vector<int32_t>* postponable);

// Enqueues b := op(A)^-1 b, b being n x k of the factor's type `dtype`: permutations and scales
// included, without refinement; the Schur complement of kept unknowns counts as the identity. The
// same bits each time; those of a column do not depend on the others' values. `scale`: false where
// the caller applies the scales.
absl::Status SolveMultifrontal(Context& context, const Analysis& analysis, const std::byte* factor,
                               Op op, const AnyMatrix& b, std::span<std::byte> workspace,
                               bool scale);

// det A. 0 of a singular one: info > 0. Blocks.
absl::StatusOr<LogDeterminant> MultifrontalDeterminant(Context& context, const Analysis& analysis,
                                                       const NumericSummary& summary,
                                                       const std::byte* factor, DType dtype);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_MULTIFRONTAL_H_
