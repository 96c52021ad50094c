// SPDX-License-Identifier: Apache-2.0

// Multifrontal sparse LU on the host: numeric phase and solves.
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

// Sizes, in bytes, of the blocks for the calls below; blocks are aligned to 64 bytes. `k` > 0 is
// the number of right-hand sides. If the workspace for all threads exceeds `most`, fewer threads
// work on subtrees in parallel: as many as fit into `most`, but at least one.
size_t MultifrontalFactorBytes(const Analysis& analysis, DType dtype);
size_t MultifrontalWorkspaceBytes(const Executor& executor, const Analysis& analysis, DType dtype,
                                  size_t most = std::numeric_limits<size_t>::max());
size_t MultifrontalSolveWorkspaceBytes(const Executor& executor, const Analysis& analysis,
                                       DType dtype, int64_t k);

// Factors `a` in `dtype` into `factor`, a block of MultifrontalFactorBytes() that
// MultifrontalLayout describes. `dtype` is real or complex as `a` is. The entries of the scaled
// matrix are rounded to `dtype` once. `a` must have the order and number of entries that were
// analyzed (INVALID_ARGUMENT otherwise). If its pattern differs, the factor is useless, but no
// memory outside the arguments is touched.
//
// Threads, as many as `workspace` has room for, work on subtrees in parallel. Then large fronts
// above the subtrees are processed by tiles on all threads, small ones on one thread. The bits do
// not depend on the number of cores or threads. `stop` is called at every front or more often. Once
// it returns true the result is CANCELLED and `factor` is undefined. If analysis.kept > 0, F11 of
// the last front is the Schur complement and its interchanges are undefined.
//
// If `postponable` is not null, it receives the positions, ascending, of pivots that were perturbed
// or not acceptable (Analysis::pivot_threshold) and whose front has a parent. If `report` is not
// null, it receives the number of final columns after each subtree and after each front above them.
absl::StatusOr<NumericSummary> FactorMultifrontal(
    Executor& executor, const Analysis& analysis, const AnySparse& a, DType dtype,
    std::span<std::byte> factor, std::span<std::byte> workspace, StopRequested stop,
    std::vector<int32_t>* postponable = nullptr, DeviceReport* report = nullptr);

// b := op(A)^-1 b, including permutations and scales, without refinement. `b` is n x k in the
// factor's type. The bits of a column depend neither on the number of cores nor on the values of
// other columns. CANCELLED if `stop` returns true; `b` is then undefined. `scale`: false if the
// caller applies the scales.
//
// If analysis.kept > 0 the solve uses the identity in place of the Schur complement. With the
// blocks of op(A) and index 2 for the kept unknowns:
//   b2 := b2 - A21 A11^-1 b1,  b1 := A11^-1 (b1 - A12 b2).
absl::Status SolveMultifrontal(Executor& executor, const Analysis& analysis,
                               std::span<const std::byte> factor, Op op, const AnyMatrix& b,
                               std::span<std::byte> workspace, StopRequested stop,
                               bool scale = true);

// Returns det A; 0 if A is singular (info > 0).
LogDeterminant MultifrontalDeterminant(const Analysis& analysis, const NumericSummary& summary,
                                       std::span<const std::byte> factor, DType dtype);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_MULTIFRONTAL_MULTIFRONTAL_H_
