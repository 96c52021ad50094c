// SPDX-License-Identifier: Apache-2.0

// The result of a factorization: its summary and its bytes.
#ifndef CROUT_KERNELS_FACTORIZATION_H_
#define CROUT_KERNELS_FACTORIZATION_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/factor_parts.h"
#include "kernels/irregular_batch.h"
#include "kernels/lu_algorithm.h"
#include "kernels/numerics/accuracy_warnings.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/stop_requested.h"
#include "kernels/util/size_class.h"

namespace crout {

// Seconds spent in each phase on the device. Preparation of a factor counts as `factor`. The job's
// inputs are on the device before it starts, so host-to-device copies are not included.
struct KernelTimings {
  double factor = 0;
  double solve = 0;
  double refine = 0;
  double device_to_host = 0;
};

// Reason why a matrix is singular, or appears singular to a method without pivoting. An empty row
// or column has no nonzero entry. kStructure: every choice of one entry in each row and column
// includes a zero.
enum class SingularReason : uint8_t { kNone, kZeroPivot, kEmptyRow, kEmptyColumn, kStructure };

// Precision of a factor, and the correction its solves need.
enum class FactorPrecision : uint8_t {
  kFactorType,  // in the factor type; solves reach that accuracy
  kSingle,      // single precision; solves are corrected to the accuracy of B's type
  kTf32,        // same, with large products in TF32 (11-bit significands)
};

// Reason why a requested low-precision factor was replaced by one in the matrix's type.
enum class PrecisionFallback : uint8_t {
  kNone,        // no fallback
  kUnusable,    // a pivot was zero, or an entry overflowed, in low precision
  kCondition,   // the condition estimate leaves no correct digit
  kStagnation,  // a solve did not reach the required accuracy
};

// Threshold for scaled errors in LAPACK's tests.
inline constexpr double kPoorQuality = 30;

// Returns true if a factor of this quality and growth may make an unverified solve inaccurate.
inline bool IsPoorFactor(double quality, double pivot_growth, DType factor_dtype) {
  return !(quality <= kPoorQuality) || IsGrowthHarmful(pivot_growth, factor_dtype);
}

// Summary of an irregular batch: its sizes, and the worst values over its members.
struct BatchSummary {
  BatchExtent extent;
  int64_t singular = 0;     // members with info != 0
  double pivot_growth = 1;  // largest over all members
  double quality = 0;       // largest over all members
  // Number of regular members with a poor factor (as FactorSummary::is_poor for a single matrix)
  // and of nearly singular members, with the 0-based index of the first of each.
  int64_t poor = 0;
  int64_t first_poor = 0;
  int64_t nearly_singular = 0;
  int64_t first_nearly_singular = 0;
};

// The result of SparseLu::WorkspaceBytes for an analysis, cached because computing it may visit
// every front.
struct CachedWorkspace {
  const SparseLu* lu = nullptr;  // null: unset
  DType dtype = DType::kFloat64;
  size_t bytes = 0;
};

// Summary of a sparse factorization.
struct SparseSummary {
  std::shared_ptr<const Analysis> analysis;  // not null; its memory is charged to its owner
  CachedWorkspace workspace;                 // workspace for that analysis
  bool reused = false;                       // the analysis existed before this factorization
  // Number of refactorizations with postponed pivots. If positive, `analysis` depends on the values
  // of A. `numeric` describes the last factorization.
  int postponements = 0;
  double flops = 0;  // sum over all of these factorizations
  NumericSummary numeric;
};

// Kinds of factors, by their parts. A factor is of one kind.
enum class FactorKind : uint8_t { kDense, kSparse, kBatch };

// Summary of a factorization: the figures by which the caller judges it.
struct FactorSummary {
  std::string algorithm;  // the algorithm that ran, never "auto"
  int64_t n = 0;          // order; of a batch, the largest number of rows or columns
  DType factor_dtype = DType::kFloat64;
  DType matrix_dtype = DType::kFloat64;
  FactorPrecision precision = FactorPrecision::kFactorType;
  PrecisionFallback precision_fallback = PrecisionFallback::kNone;
  UnitDiagonal unit_diagonal = UnitDiagonal::kL;
  // LAPACK's info. If positive, the matrix is singular, and info is the 1-based index of the first
  // exactly zero pivot. If an empty row or column was detected, info is n and nothing was factored.
  // If `pivots` is false, info > 0 means only that the factor is unusable, at a pivot that is zero
  // or, for some methods, too small.
  int64_t info = 0;
  // True if a zero pivot proves A singular: the method pivots, and entries grew by less than 1 / u,
  // where u is the unit roundoff.
  bool pivots = true;
  // True if zero pivots of a dense factor were replaced, because entries grew by 1 / u or more.
  // Such a factor is complete but poor.
  bool pivot_replaced = false;
  SingularReason singular = SingularReason::kNone;
  int64_t empty_index = 0;  // 1-based index of the empty row or column, or of the unmatched row
  // Largest |u_ij| over the largest entry of the (equilibrated) matrix that was factored. 0/0 is 1;
  // it occurs for n = 0 and the zero matrix. +Inf if the factorization overflowed its type: such a
  // factor is useless, and its solves report a backward error that is NaN or near 1. 0 for methods
  // that do not expose U.
  double pivot_growth = 0;
  // Estimate of |PA - LU|_1 / (n |A|_1 eps) for the (equilibrated) matrix in the factor's type
  // (factor_probe.h). +Inf if the factor contains NaN or Inf; 0 for n = 0. Unset if the matrix is
  // singular (some methods then leave an incomplete factor) or if there is no factor.
  std::optional<double> quality;
  // Indicator of the condition number of the factored matrix, a by-product of the factorization:
  // PivotCondition for a dense matrix, the error of a solve for a sparse one. 0: not available.
  double condition_signal = 0;
  double norm_one = 0;  // norms of A as received
  double norm_inf = 0;
  int64_t matrix_nonzeros = 0;  // stored entries of A, if A is kept sparse
  bool row_scaled = false;      // scaled by equilibration
  bool col_scaled = false;
  // On request: estimate of the 1-norm reciprocal condition number of A as received. 0 if A is
  // singular, or if the factor or the estimate overflowed its type; 1 for n = 0. Unset if
  // is_inconclusive() or pivot_replaced.
  std::optional<double> rcond;
  // Same for the equilibrated matrix; set only if A was scaled.
  std::optional<double> rcond_scaled;
  // On request: sign and log |det| of A as received. Unset if is_inconclusive(), if the factor
  // overflowed its type, and if the factor's determinant differs from det A: a low-precision
  // factor, or perturbed or replaced pivots.
  std::optional<double> det_sign;
  double det_sign_imaginary = 0;  // a complex determinant's sign has modulus 1
  std::optional<double> det_log_abs;
  std::optional<IterationReport> iterations;    // iterative methods only
  std::optional<PreparationStats> preparation;  // if the factor was prepared for a solver
  // Set for a batch. `info` is then 0, `pivot_growth` and `quality` are the worst of any member,
  // and the other fields for a single matrix are unset.
  std::optional<BatchSummary> batch;
  std::optional<SparseSummary> sparse;

  FactorKind kind() const {
    return batch ? FactorKind::kBatch : sparse ? FactorKind::kSparse : FactorKind::kDense;
  }
  // Returns true if L and U exist; A may be singular.
  bool has_factors() const {
    return singular == SingularReason::kNone || singular == SingularReason::kZeroPivot;
  }
  // Returns true if a pivot was zero or too small, but this does not prove A singular: better
  // pivots may exist.
  bool is_inconclusive() const { return singular == SingularReason::kZeroPivot && !pivots; }
  // Returns true if |PA - LU| exceeds the limit of LAPACK's tests, or entries grew too much.
  bool is_poor() const {
    if (batch) return batch->poor > 0;
    return info == 0 && IsPoorFactor(quality.value_or(0), pivot_growth, factor_dtype);
  }
  // Returns true if pivots of a sparse factor were perturbed. L and U are then factors of a matrix
  // near A.
  bool is_perturbed() const { return sparse && sparse->numeric.perturbed_pivots > 0; }
  // Returns true if A is numerically singular. Uses rcond if it was estimated and applies to A,
  // otherwise condition_signal. A low-precision factor alone gives no such evidence: its solves are
  // corrected.
  bool is_nearly_singular() const {
    if (batch) return batch->nearly_singular > 0;
    if (info > 0 || n == 0) return false;
    // The signal of a poor factor does not apply to A.
    if (!rcond && is_poor() && !is_perturbed()) return false;
    const bool by_rcond = rcond && !(is_perturbed() && condition_signal * *rcond > 1);
    return IsNearlySingular(by_rcond ? 1 / rcond_scaled.value_or(*rcond) : condition_signal,
                            reached_dtype(), n);
  }
  // Returns the type whose accuracy solves reach.
  DType reached_dtype() const {
    return precision == FactorPrecision::kFactorType ? factor_dtype : matrix_dtype;
  }
};

// Names of the parts of a dense LU factorization.
inline constexpr std::string_view kLuPart = "lu";
inline constexpr std::string_view kIpivPart = "ipiv";
inline constexpr std::string_view kScalesPart = "scales";
inline constexpr std::string_view kMatrixPart = "matrix";
inline constexpr std::string_view kSparseMatrixPart = "sparse matrix";
inline constexpr std::string_view kPreparedPart = "prepared";
// Names of the further parts of a batch. The layout of its "lu" and "matrix" is described in
// jobs/batch/batch_payload.h; it also has "ipiv".
inline constexpr std::string_view kMembersPart = "members";
inline constexpr std::string_view kFiguresPart = "figures";

// The result of an LU method. The descriptions of the parts are for a dense factor. The "lu" part
// of a sparse factor is a block in the format of its method, which includes row interchanges and
// scales.
struct Factorization {
  FactorSummary summary;
  FactorParts parts;

  const Buffer& lu() const { return parts[kLuPart]; }      // n x n, factor type, ld = n
  const Buffer& ipiv() const { return parts[kIpivPart]; }  // n x int64, 1-based row interchanges
  // n row scales, then n column scales, float64. Empty without equilibration.
  const Buffer& scales() const { return parts[kScalesPart]; }
  // n x n, matrix type, column-major: A as received. Empty if A is not kept, or kept sparse.
  const Buffer& matrix() const { return parts[kMatrixPart]; }
  // AnySparse block, matrix type: A as received. Empty if A is not kept, or kept dense.
  // MakeKeptOperand() returns the form that exists.
  const Buffer& sparse_matrix() const { return parts[kSparseMatrixPart]; }
  bool has_matrix() const { return parts.Has(PartKind::kOperand); }
  // Filled by TriangularSolver::Prepare; empty if the factor was not prepared.
  const Buffer& prepared() const { return parts[kPreparedPart]; }

  // Returns the view of the factor for solvers.
  FactorView view() const {
    const int64_t n = summary.n;
    return {{lu().data(), summary.factor_dtype, n, n, std::max<int64_t>(1, n)},
            ipiv().as<int64_t>(),
            summary.unit_diagonal,
            /*caller_scales=*/false,
            prepared().data(),
            summary.preparation.value_or(PreparationStats()),
            summary.sparse ? summary.sparse->analysis.get() : nullptr};
  }
};

}  // namespace crout

#endif  // CROUT_KERNELS_FACTORIZATION_H_
