// A factorization: what is known of it, and its bytes.
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
#include "kernels/numerics/judgment.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/stop_requested.h"
#include "kernels/util/size_class.h"

namespace crout {

// Seconds spent in each phase that happens on a device; the preparation of a factor counts as
// `factor`. What a job works on is on the device when it starts: copies to there are not in it.
struct KernelTimings {
  double factor = 0;
  double solve = 0;
  double refine = 0;
  double device_to_host = 0;
};

// Why a matrix is singular, or seems so to a method without pivoting. An empty row or column has no
// entry but zeros.
// Of a matrix whose structure is singular no choice of one entry in each row and column is without
// a zero.
enum class SingularReason : uint8_t { kNone, kZeroPivot, kEmptyRow, kEmptyColumn, kStructure };

// In what a factor was computed, and so what its solves have to do.
enum class FactorPrecision : uint8_t {
  kAsTyped,  // in its type: solves are as accurate as that
  kSingle,   // in single precision, for solves that are corrected to that of B
  kTf32,     // likewise, and its large products by TF32 numbers of 11 bits
};

// Why a factor is in its matrix's type where a lower precision was to do.
enum class PrecisionFallback : uint8_t {
  kNone,        // it is not, or was not to
  kUnusable,    // there, a pivot was zero or an entry overflowed
  kCondition,   // the condition estimate leaves no figure right
  kStagnation,  // a solve did not get accurate
};

// LAPACK's threshold for scaled errors, as its tests have it.
inline constexpr double kPoorQuality = 30;

// Whether a factor of this quality and growth may spoil a solve whose error is not measured.
inline bool IsPoorFactor(double quality, double pivot_growth, DType factor_dtype) {
  return !(quality <= kPoorQuality) || IsGrowthHarmful(pivot_growth, factor_dtype);
}

// Of an irregular batch: its sizes, and the worst of its members.
struct BatchSummary {
  BatchExtent extent;
  int64_t singular = 0;     // members whose info is not 0
  double pivot_growth = 1;  // largest of any member
  double quality = 0;       // likewise
  // Regular members whose factors are poor, as FactorSummary::is_poor says of one matrix, and those
  // that are nearly singular; the 0-based index of the first of each.
  int64_t poor = 0;
  int64_t first_poor = 0;
  int64_t nearly_singular = 0;
  int64_t first_nearly_singular = 0;
};

// What a method's WorkspaceBytes said for an analysis: asking it again may take as long as a look
// at every front does.
struct KnownWorkspace {
  const SparseLu* lu = nullptr;  // null: nothing is known
  DType dtype = DType::kFloat64;
  size_t bytes = 0;
};

// Of a sparse matrix, by a sparse method.
struct SparseSummary {
  std::shared_ptr<const Analysis> analysis;  // not null; its memory is charged to its owner
  KnownWorkspace workspace;                  // for that analysis
  bool reused = false;                       // it was there
  // How often positions were postponed, and the factorization done again: then `analysis` depends
  // on values. `numeric` is of the last.
  int postponements = 0;
  double flops = 0;  // of all of them
  NumericSummary numeric;
};

// What the caller needs in order to trust a factorization.
struct FactorSummary {
  std::string algorithm;  // the name that ran, never "auto"
  int64_t n = 0;          // of a batch the largest number of rows or columns
  DType factor_dtype = DType::kFloat64;
  DType matrix_dtype = DType::kFloat64;
  FactorPrecision precision = FactorPrecision::kAsTyped;
  PrecisionFallback precision_fallback = PrecisionFallback::kNone;
  UnitDiagonal unit_diagonal = UnitDiagonal::kL;
  // > 0: singular. The 1-based index of the first exactly zero pivot; n where a row or column was
  // seen to be empty: nothing was factored then. Without pivoting, and by methods that end at a
  // zero pivot after growth by 1 / u or more, the factor alone is unusable, at a pivot that is zero
  // or, to some methods, too small.
  int64_t info = 0;
  // Whether a zero pivot is one of A: the method looked for others, and entries grew by less than
  // 1 / u.
  bool pivots = true;
  // Whether zero pivots of a dense factor were replaced, as they are where entries grew that much:
  // the factor is complete, and poor.
  bool pivot_replaced = false;
  SingularReason singular = SingularReason::kNone;
  int64_t empty_index = 0;  // 1-based, of the empty row or column, or the row that is left over
  // Largest |u_ij| over the largest entry of the (equilibrated) matrix that was factored; 0/0, as
  // for n = 0 and the zero matrix, is 1. +Inf when the factorization left the range of its type:
  // such a factor is useless, and solves with it report a backward error that is NaN or near 1. 0
  // by methods that do not show U.
  double pivot_growth = 0;
  // Estimate of |PA - LU|_1 / (n |A|_1 eps), of the (equilibrated) matrix in the factor's type that
  // was factored (factor_probe.h). +Inf where the factor holds a NaN or Inf; 0 for n = 0. Unset for
  // a singular matrix, whose factors some methods leave incomplete, and where there are none.
  std::optional<double> quality;
  // What the factorization itself shows of the condition number of the matrix that was factored:
  // PivotCondition of a dense one, the error of a solve of a sparse one. 0: nothing.
  double condition_signal = 0;
  double norm_one = 0;  // of A as it arrived
  double norm_inf = 0;
  int64_t matrix_nonzeros = 0;  // entries of A, where it is kept as a sparse matrix
  bool row_scaled = false;      // by equilibration
  bool col_scaled = false;
  // On request: 1-norm reciprocal condition estimate of A as it arrived. 0 if singular, or if the
  // factor or the estimate left the range of its type; 1 for n = 0. Unset if says_nothing()
  // or pivot_replaced.
  std::optional<double> rcond;
  // The same of the equilibrated matrix that was factored; only where it was scaled.
  std::optional<double> rcond_scaled;
  // On request, of A as it arrived. Unset if says_nothing(), where the factor left its range, and
  // where it is not that of A: in lower precision, and with perturbed or replaced pivots.
  std::optional<double> det_sign;
  double det_sign_imaginary = 0;  // of a complex determinant, whose sign is of modulus 1
  std::optional<double> det_log_abs;
  std::optional<IterationReport> iterations;    // of iterative methods
  std::optional<PreparationStats> preparation;  // where the factor was prepared for a solver
  // Of a batch; `info` is 0 then, `pivot_growth` and `quality` the worst of any member, and the
  // rest of what is said of one matrix is not set.
  std::optional<BatchSummary> batch;
  std::optional<SparseSummary> sparse;

  // Whether there are L and U, if those of a singular matrix.
  bool has_factors() const {
    return singular == SingularReason::kNone || singular == SingularReason::kZeroPivot;
  }
  // Whether a pivot was zero, or too small, for which a regular matrix may have had a better one.
  bool says_nothing() const { return singular == SingularReason::kZeroPivot && !pivots; }
  // Whether L U is further from PA than LAPACK's tests accept, or entries grew too much.
  bool is_poor() const {
    if (batch) return batch->poor > 0;
    return info == 0 && IsPoorFactor(quality.value_or(0), pivot_growth, factor_dtype);
  }
  // Whether pivots of a sparse factor were replaced: then it is that of a matrix near A.
  bool is_perturbed() const { return sparse && sparse->numeric.perturbed_pivots > 0; }
  // Whether A may as well be singular: by rcond where it was estimated and is A's, else by what the
  // factorization shows. Solves with a factor in lower precision are corrected: it shows nothing.
  bool is_nearly_singular() const {
    if (batch) return batch->nearly_singular > 0;
    if (info > 0 || n == 0) return false;
    // What a poor factor shows is not A's.
    if (!rcond && is_poor() && !is_perturbed()) return false;
    const bool by_rcond = rcond && !(is_perturbed() && condition_signal * *rcond > 1);
    return IsNearlySingular(by_rcond ? 1 / rcond_scaled.value_or(*rcond) : condition_signal,
                            reached_dtype(), n);
  }
  // The type whose accuracy solves reach.
  DType reached_dtype() const {
    return precision == FactorPrecision::kAsTyped ? factor_dtype : matrix_dtype;
  }
};

// The parts of a dense LU factorization.
inline constexpr std::string_view kLuPart = "lu";
inline constexpr std::string_view kIpivPart = "ipiv";
inline constexpr std::string_view kScalesPart = "scales";
inline constexpr std::string_view kMatrixPart = "matrix";
inline constexpr std::string_view kSparseMatrixPart = "sparse matrix";
inline constexpr std::string_view kPreparedPart = "prepared";
// Of a batch beside "lu" and "matrix", which are blocks as jobs/batch_payload.h says, and "ipiv".
inline constexpr std::string_view kMembersPart = "members";
inline constexpr std::string_view kFiguresPart = "figures";

// The result of an LU method. What is said of its parts is of a dense one; the "lu" of a sparse one
// is a block that only its own method knows, and there are no row interchanges or scales beside it.
struct Factorization {
  FactorSummary summary;
  FactorParts parts;

  const Buffer& lu() const { return parts[kLuPart]; }      // n x n, factor type, ld = n
  const Buffer& ipiv() const { return parts[kIpivPart]; }  // n x int64, 1-based row interchanges
  // n row scales, then n column scales, float64. Empty without equilibration.
  const Buffer& scales() const { return parts[kScalesPart]; }
  // n x n, matrix type, by columns: A as it arrived. Empty if not kept, or kept sparse.
  const Buffer& matrix() const { return parts[kMatrixPart]; }
  // As AnySparse, matrix type: A as it arrived. Empty if not kept, or kept dense. KeptOperand() is
  // whichever there is.
  const Buffer& sparse_matrix() const { return parts[kSparseMatrixPart]; }
  bool has_matrix() const { return parts.Has(PartKind::kOperand); }
  // By TriangularSolver::Prepare; empty if the factor was not prepared.
  const Buffer& prepared() const { return parts[kPreparedPart]; }

  // As solvers see it.
  FactorView view() const {
    const int64_t n = summary.n;
    return {{lu().data(), summary.factor_dtype, n, n, std::max<int64_t>(1, n)},
            ipiv().as<int64_t>(),
            summary.unit_diagonal,
            /*scales_apart=*/false,
            prepared().data(),
            summary.preparation.value_or(PreparationStats()),
            summary.sparse ? summary.sparse->analysis.get() : nullptr};
  }
};

}  // namespace crout

#endif  // CROUT_KERNELS_FACTORIZATION_H_
