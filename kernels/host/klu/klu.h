// SPDX-License-Identifier: Apache-2.0

// Sparse LU by SuiteSparse's KLU (T. A. Davis and E. Palamadai Natarajan, ACM TOMS 37(3), 2010):
// left-looking, column by column. Suits matrices with little fill-in, such as those of circuits and
// power grids. Runs on one core, in float64 or complex128.
#ifndef CROUT_KERNELS_HOST_KLU_KLU_H_
#define CROUT_KERNELS_HOST_KLU_KLU_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/matrix.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/factor_download.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/sparse_view.h"

namespace crout::host {

// Sizes, in bytes, of the blocks for the calls below; blocks are aligned to 16 bytes. `dtype` is
// the factor's type: float64 or complex128. A factor's block has room for 1.5 times the entries
// that the analysis predicts without interchanges, plus 8 per column. UNIMPLEMENTED beyond KLU's
// 31-bit indices.
absl::StatusOr<size_t> KluFactorBytes(const Analysis& analysis, DType dtype);
size_t KluWorkspaceBytes(const Analysis& analysis, DType dtype);
size_t KluSolveWorkspaceBytes(const Analysis& analysis, DType dtype);

// Factors B of the analysis: L U = P B. `a` may have any precision; it is real or complex as the
// factor is. The pivot is the diagonal entry if it is at least a thousandth of its column's largest
// entry. All of KLU's allocations are in `factor`, which may be moved. If info > 0, all pivot
// candidates of a column were exactly zero and there is no factor. `max_abs` and `pivot_growth` are
// defined in multifrontal_factor.h. No pivot is perturbed.
//
// INVALID_ARGUMENT: the matrix has another order or number of entries. RESOURCE_EXHAUSTED: pivots
// off the diagonal caused more fill-in than `factor` has room for; the matrix itself may be
// regular. CANCELLED by `stop`, which is polled each time the factor has grown by four numbers a
// column.
absl::StatusOr<NumericSummary> FactorKlu(const Analysis& analysis, const AnySparse& a, DType dtype,
                                         std::span<std::byte> factor,
                                         std::span<std::byte> workspace, StopRequested stop);

// Factors with the pivots and pattern of `last`, a factor of another matrix with the same analysis
// and type. Does only the arithmetic of the elimination. Returns nullopt if there is no such factor
// or it is unsuitable: a pivot is zero, or pivot growth exceeds both kMaxKluGrowth and ten times
// the previous growth. `factor` is then undefined. CANCELLED by `stop`.
inline constexpr double kMaxKluGrowth = 1e6;
absl::StatusOr<std::optional<NumericSummary>> RefactorKlu(
    const Analysis& analysis, const AnySparse& a, DType dtype, std::span<const std::byte> last,
    std::span<std::byte> factor, std::span<std::byte> workspace, StopRequested stop);

// b := op(A)^-1 b, including permutations and scales, without refinement. `b` is n x k in the
// factor's type. The bits of a column do not depend on other columns. Any number of threads may
// solve with one factor. FAILED_PRECONDITION if the matrix is singular.
absl::Status SolveKlu(const Analysis& analysis, std::span<const std::byte> factor, Op op,
                      const AnyMatrix& b, std::span<std::byte> workspace);

// Returns det A; 0 if A is singular (info > 0).
LogDeterminant KluDeterminant(const Analysis& analysis, const NumericSummary& summary,
                              std::span<const std::byte> factor, DType dtype);

// Writes L and U, of order 1 or more, to `out` in the format of a download. `layout` is for this
// factor's counts. FAILED_PRECONDITION if the matrix is singular.
absl::Status WriteKluEntries(const Analysis& analysis, std::span<const std::byte> factor,
                             DType dtype, const SparseDownloadLayout& layout, std::byte* out);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_KLU_KLU_H_
