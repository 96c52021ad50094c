// Sparse LU by KLU (T. A. Davis and E. Palamadai Natarajan, ACM TOMS 37(3), 2010), of SuiteSparse:
// left-looking, column by column, for matrices whose factors stay nearly as sparse as they are, as
// those of circuits and power grids do. On one core, in float64 or complex128.
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

// For the calls below, `dtype` being the factor's: float64 or complex128. Blocks are aligned to 16
// bytes. A factor's has room for half as many entries again as the analysis foresees without
// interchanges, and for one in each column; UNIMPLEMENTED beyond KLU's 31-bit indices.
absl::StatusOr<size_t> KluFactorBytes(const Analysis& analysis, DType dtype);
size_t KluWorkspaceBytes(const Analysis& analysis, DType dtype);
size_t KluSolveWorkspaceBytes(const Analysis& analysis, DType dtype);

// Factors B of the analysis, of any precision but of the factor's field: L U = P B, with the pivot
// on the diagonal where it is at least a thousandth of its column's largest. Everything that KLU
// allocates lies in `factor`, which may be moved. info > 0: a pivot was exactly zero and no other
// was in its column; there is no factor then. `max_abs` and `pivot_growth` are as
// multifrontal_factor.h says; no pivot is perturbed.
// INVALID_ARGUMENT: a matrix of another order or number of entries. RESOURCE_EXHAUSTED: pivots off
// the diagonal made more fill-in than `factor` has room for, which says nothing of the matrix.
// CANCELLED by `stop`, which is polled each time the factor has grown by four numbers a column.
absl::StatusOr<NumericSummary> FactorKlu(const Analysis& analysis, const AnySparse& a, DType dtype,
                                         std::span<std::byte> factor,
                                         std::span<std::byte> workspace, StopRequested stop);

// The same with the pivots and the pattern of `last`, the factor of another matrix by the same
// analysis and in the same type: the work of elimination alone. nullopt where there are none, or
// they do not serve: a pivot is zero, or entries grow beyond kMostKluGrowth, or ten times as much
// as before. `factor` is undefined then. CANCELLED by `stop`.
inline constexpr double kMostKluGrowth = 1e6;
absl::StatusOr<std::optional<NumericSummary>> RefactorKlu(
    const Analysis& analysis, const AnySparse& a, DType dtype, std::span<const std::byte> last,
    std::span<std::byte> factor, std::span<std::byte> workspace, StopRequested stop);

// b := op(A)^-1 b, b being n x k of the factor's type: permutations and scales included, without
// refinement. Bits of a column do not depend on the other columns. Any number of threads may solve
// with one factor. FAILED_PRECONDITION with that of a singular matrix.
absl::Status SolveKlu(const Analysis& analysis, std::span<const std::byte> factor, Op op,
                      const AnyMatrix& b, std::span<std::byte> workspace);

// det A. 0 of a singular one: info > 0.
LogDeterminant KluDeterminant(const Analysis& analysis, const NumericSummary& summary,
                              std::span<const std::byte> factor, DType dtype);

// L and U, to `out`, as a download has them: with the layout for this factor's counts, of order
// n > 0. FAILED_PRECONDITION with that of a singular matrix.
absl::Status WriteKluEntries(const Analysis& analysis, std::span<const std::byte> factor,
                             DType dtype, const SparseDownloadLayout& layout, std::byte* out);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_KLU_KLU_H_
