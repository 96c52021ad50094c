// SPDX-License-Identifier: Apache-2.0

// Dense device operations. The factorization and solve pipelines are written once in terms of
// these.
#ifndef CROUT_KERNELS_MATRIX_OPS_H_
#define CROUT_KERNELS_MATRIX_OPS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/dtype.h"
#include "kernels/matrix.h"
#include "kernels/numerics/factor_probe.h"
#include "kernels/value_map.h"

namespace crout {

// A list of entries in one block of memory: `count` values, then `count` row indices, then `count`
// column indices, 0-based. The indices are unchecked.
struct EntryList {
  static constexpr size_t kIndexBytes = 2 * sizeof(int32_t);  // bytes of an entry besides its value

  // `block` has count (SizeOf(dtype) + kIndexBytes) bytes and the alignment of a value.
  EntryList(const std::byte* block, DType dtype, int64_t count)
      : dtype(dtype),
        count(count),
        values(block),
        rows(reinterpret_cast<const int32_t*>(block + count * SizeOf(dtype))),
        cols(rows + count) {}

  DType dtype;
  int64_t count;
  const std::byte* values;
  const int32_t* rows;
  const int32_t* cols;
};

// Filled by MatrixOps::Import. Norms are of the matrix as received, in float64; for complex entries
// they use the modulus.
struct MatrixStats {
  // Packed offset (in payload order) of the first NaN or Inf; -1 if there is none. If it is >= 0,
  // the norms are unspecified.
  int64_t first_non_finite = -1;
  // Packed offset of the first finite element that overflowed to Inf in the conversion to a
  // narrower type; -1 if there is none.
  int64_t first_overflow = -1;
  double norm_one = 0;  // max over columns of the sum of absolute values
  double norm_inf = 0;  // max over rows of the sum of absolute values
  double max_abs = 0;
};

// Filled by MatrixOps::EquilibrationScales: LAPACK geequb's rowcnd, colcnd and amax. For a complex
// entry the larger part counts, which cannot overflow.
struct ScaleStats {
  double row_condition = 1;
  double col_condition = 1;
  double max_abs = 0;
  // First zero row or column, 1-based; 0 if there is none. A value up to `rows` is a row; a larger
  // value is `rows` plus the column. If nonzero, there are no scales and the matrix is singular.
  int64_t zero_line = 0;
};

// Filled by MatrixOps::InspectFactor.
struct FactorStats {
  // Largest |u_ij|; if U has the unit diagonal, of diag(L) U. NaN if the factor contains NaN.
  double max_abs_u = 0;
  // Smallest and largest modulus on the diagonal with the pivots (not the unit diagonal). 0 for n =
  // 0; undefined if the factor contains NaN.
  double min_pivot = 0;
  double max_pivot = 0;
  // Determinant of the factored matrix: sign * exp(log_abs). For an exactly singular matrix, sign
  // is 0 and log_abs -Inf. For n = 0, sign is 1 and log_abs 0.
  double det_sign = 1;
  double det_log_abs = 0;
  // Probe |z^T (A - P^T L U)|_inf with the probe's z; NaN or Inf if the factor contains one. 0
  // without a probe.
  double probe = 0;
  // For a complex matrix, the sign is det_sign + i det_sign_imaginary, of modulus 1.
  double det_sign_imaginary = 0;
};

// Filled by MatrixOps::Residual, WideRangeResidual and ComponentwiseError.
struct ResidualStats {
  // max over columns j of |b_j - op(A) x_j|_inf / (|op(A)|_inf |x_j|_inf + |b_j|_inf), with 0/0 =
  // 0. NaN if any value involved is not finite.
  double backward_error = 0;
  // max over columns and rows i of |b - op(A) x|_i / (|op(A)| |x| + |b|)_i, with small components
  // guarded as in LAPACK gerfs (numerics/componentwise.h). |z| is |Re z| + |Im z| for complex
  // numbers. NaN if any value involved is not finite.
  double componentwise_error = 0;
};

// Filled by MatrixOps::SetEntries.
struct EntryStats {
  int64_t first_outside = -1;  // index of the first entry outside `a`; -1: none
  // Index of the first entry overwritten with a different value; -1: none.
  int64_t first_contradicted = -1;
};

// Filled by MatrixOps::SumValues.
struct ValueStats {
  // Line of the first value with a nonzero imaginary part where it must be zero; -1: none.
  int64_t first_not_real = -1;
};

// All matrices are in the memory of the context's device, column-major unless packed. Calls enqueue
// (see ExecutionContext). The status is INTERNAL or UNAVAILABLE if the device refuses the work; it
// never reports numerical problems.
class MatrixOps {
 public:
  virtual ~MatrixOps() = default;

  // out := in, converted to out's type and column-major order; fills report().matrix with the
  // statistics of `in`. Shapes agree, with one exception: a real `out` of a complex `in` has twice
  // as many columns, first all real parts, then all imaginary parts. `out` must not overlap `in`,
  // unless both are the same memory with the same type and column-major layout; then only the
  // statistics are computed.
  virtual absl::Status Import(const PackedMatrix& in, const AnyMatrix& out) = 0;

  // out := in, converted, packed by columns or rows as given by `layout`. The layout of a real `in`
  // may be complex, with the columns of `in` as described for Import. `out.data` is in device
  // memory.
  virtual absl::Status Export(const AnyMatrix& in, const PackedMatrix& layout, std::byte* out) = 0;

  // out := diag(row) in diag(col), converted. Each element is computed as (row_i in_ij) col_j in
  // float64 or complex128. Both matrices are real, or both complex. row, col: float64 scales in
  // device memory, or null for the identity. `out` may be `in`, with the same type and ld.
  virtual absl::Status CopyScaled(const AnyMatrix& in, const double* row, const double* col,
                                  const AnyMatrix& out) = 0;

  // Computes powers of two r (rows) and c (columns) such that every row and column of diag(r) A
  // diag(c) has its largest entry in (1/2, 2], as LAPACK geequb does. Exponents stay within +-1022.
  // Fills report().scale. A zero row or column has scale 1; all results are unspecified if `a`
  // contains NaN or Inf.
  virtual absl::Status EquilibrationScales(const AnyMatrix& a, double* row, double* col) = 0;

  // Computes powers of two with exponents within +-1022. down[j] scales the largest |row_i in_ij|
  // of column j (for complex entries, the larger part) into [2^exponent, 2^(exponent + 1)); up[j]
  // is its inverse. Both are 1 for a column that is zero or not finite. row: float64 in device
  // memory, or null for ones.
  virtual absl::Status ColumnScales(const AnyMatrix& in, const double* row, int exponent,
                                    double* down, double* up) = 0;

  // Starts the probe of the factorization of `a` (n x n). `a` may be overwritten afterwards.
  virtual absl::Status StartProbe(const AnyMatrix& a, const FactorProbe& probe) = 0;

  // Fills report().factor from an n x n factor in getrf's storage. `unit_in_u`: U has the unit
  // diagonal. ipiv: n 1-based row interchanges, or null for none. `probe`: the probe started with
  // this factor's matrix, or empty.
  virtual absl::Status InspectFactor(const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                                     const FactorProbe& probe) = 0;

  // Fills min_pivot and max_pivot of report().factor from the diagonal of `lu` (n x n), and leaves
  // its other members undefined.
  virtual absl::Status InspectPivots(const AnyMatrix& lu) = 0;

  // Computes r := b - op(a) x and fills report().residual. norm_op_a = |op(a)|_inf. a: rows x cols
  // in any type. x, b, r and the products are in float64, or complex128 if `a` is complex. r must
  // not overlap the others.
  virtual absl::Status Residual(const AnyMatrix& a, Op op, double norm_op_a, const AnyMatrix& x,
                                const AnyMatrix& b, const AnyMatrix& r) = 0;

  // Same, for systems whose products or norm overflow float64 in Residual. Computes in a range wide
  // enough for all finite a, x and b, and fills both figures of report().residual. Several times
  // slower.
  virtual absl::Status WideRangeResidual(const AnyMatrix& a, Op op, const AnyMatrix& x,
                                         const AnyMatrix& b, const AnyMatrix& r) = 0;

  // Fills report().residual.componentwise_error from the residuals r and the result w of AbsProduct
  // for the same system.
  virtual absl::Status ComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w) = 0;

  // w := |op(a)| |x| + |b|, elementwise in float64: the componentwise scale of LAPACK gerfs, with
  // |z| = |Re z| + |Im z| for complex numbers.
  virtual absl::Status AbsProduct(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                                  const MatrixView<double>& w) = 0;

  // x := x + d.
  virtual absl::Status Add(const AnyMatrix& d, const AnyMatrix& x) = 0;

  // a(rows[k], cols[k]) := values[k] for all k; fills report().entries. Entries outside `a` are
  // skipped. If an entry has several values, any one of them is stored. Values have a's type.
  virtual absl::Status SetEntries(const EntryList& entries, const AnyMatrix& a) = 0;

  // Sets each of the map.shape.elements packed elements of `out` to its sum of `values` according
  // to `map`, and fills report().values. There is one value per line. Sums are accumulated in
  // float64 or complex128, then converted. Values and elements have type `dtype`.
  virtual absl::Status SumValues(const ValueMap& map, DType dtype, const std::byte* values,
                                 std::byte* out) = 0;

  // BLAS gemm: c := alpha op(a) b + beta c, all of one type. With beta = 0, c need not be
  // initialized. c must not overlap the others; each may be a block of a larger matrix.
  virtual absl::Status Multiply(double alpha, Op op, const AnyMatrix& a, const AnyMatrix& b,
                                double beta, const AnyMatrix& c) = 0;

  // Enqueue copies of bytes within device memory, between two devices of one kind, or between
  // device and host memory. A copy overlaps other work only if its host side is
  // Device::staging_memory().
  virtual absl::Status CopyOnDevice(const void* from, void* to, size_t bytes) = 0;
  virtual absl::Status CopyToDevice(const void* host, void* device, size_t bytes) = 0;
  virtual absl::Status CopyToHost(const void* device, void* host, size_t bytes) = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_MATRIX_OPS_H_
