// Multifrontal sparse LU on the host: the numeric phase, and solves with what it leaves.
#ifndef CROUT_KERNELS_HOST_MULTIFRONTAL_MULTIFRONTAL_H_
#define CROUT_KERNELS_HOST_MULTIFRONTAL_MULTIFRONTAL_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/host/device/executor.h"
#include "kernels/matrix.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/sparse_view.h"
#include "kernels/stop_requested.h"

namespace crout::host {

// For the calls below; blocks are aligned to 64 bytes. Of a solve with k right-hand sides, k > 0.
// Where the workspace is more than `most`, it is that of fewer threads on subtrees, which wait for
// each other: `most` or less, or what one thread needs.
size_t MultifrontalFactorBytes(const Analysis& analysis, DType dtype);
size_t MultifrontalWorkspaceBytes(const Executor& executor, const Analysis& analysis, DType dtype,
                                  size_t most = std::numeric_limits<size_t>::max());
size_t MultifrontalSolveWorkspaceBytes(const Executor& executor, const Analysis& analysis,
                                       DType dtype, int64_t k);

// Factors a in `dtype`, real or complex as a is, into `factor`, of MultifrontalFactorBytes:
// MultifrontalLayout says what is there then. `a` has n and the number of entries that were
// analysed (INVALID_ARGUMENT otherwise); with another pattern the factor is of no use, but no
// memory beside the arguments is touched. The numbers of the scaled matrix are rounded to dtype
// once. Fronts of subtrees side by side, on as many threads as `workspace` has room for, those
// above them by tiles: the bits do not depend on the number of cores or threads. CANCELLED by
// `stop`, asked at least at every front: `factor` is undefined then. Where analysis.kept, the last
// front's F11 is the Schur complement then, and its interchanges are undefined.
// `postponable`, where it is not null: the positions, ascending, of pivots that were perturbed or
// not acceptable (Analysis::pivot_threshold), and that have a front above theirs. `report`, where
// it is not null, is told the columns that are final, after each subtree and each front above them.
absl::StatusOr<NumericSummary> FactorMultifrontal(
    Executor& executor, const Analysis& analysis, const AnySparse& a, DType dtype,
    std::span<std::byte> factor, std::span<std::byte> workspace, StopRequested stop,
    std::vector<int32_t>* postponable = nullptr, DeviceReport* report = nullptr);

// b := op(A)^-1 b, b being n x k of the factor's type `dtype`: permutations and scales included,
// without refinement. Bits of a column depend neither on the cores nor on the other columns'
// values. CANCELLED by `stop`: b is undefined then. Where analysis.kept the Schur complement counts
// as the identity: with index 2 for the kept unknowns, b2 := b2 - A21 A11^-1 b1 and b1 := A11^-1
// (b1 - A12 b2), of op(A)'s blocks. `scale`: false where the caller applies the scales.
absl::Status SolveMultifrontal(Executor& executor, const Analysis& analysis,
                               std::span<const std::byte> factor, Op op, const AnyMatrix& b,
                               std::span<std::byte> workspace, StopRequested stop,
                               bool scale = true);

// det A. 0 of a singular one: info > 0.
LogDeterminant MultifrontalDeterminant(const Analysis& analysis, const NumericSummary& summary,
                                       std::span<const std::byte> factor, DType dtype);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_MULTIFRONTAL_MULTIFRONTAL_H_
