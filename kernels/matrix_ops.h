// The dense building blocks that a device provides beside its LU algorithms: the factorization and
// solve pipelines are written once in terms of these.
#ifndef CROUT_KERNELS_MATRIX_OPS_H_
#define CROUT_KERNELS_MATRIX_OPS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/entry_list.h"
#include "kernels/matrix.h"
#include "kernels/numerics/factor_probe.h"
#include "kernels/value_map.h"

namespace crout {

// Filled by MatrixOps::Import. Norms are of the matrix as it arrived, in float64; of complex
// entries they take the modulus.
struct MatrixStats {
  // Packed offset (in the order of the payload) of the first NaN or Inf; -1 if there is none. When
  // it is >= 0 the norms are unspecified.
  int64_t first_non_finite = -1;
  // Packed offset of the first finite element that the conversion to a narrower type made Inf; -1
  // if there is none.
  int64_t first_overflow = -1;
  double norm_one = 0;  // max over columns of the sum of absolute values
  double norm_inf = 0;  // max over rows
  double max_abs = 0;
};

// Filled by MatrixOps::EquilibrationScales; LAPACK geequb's rowcnd, colcnd and amax. Of a complex
// entry its larger part counts, which is never out of range.
struct ScaleStats {
  double row_condition = 1;
  double col_condition = 1;
  double max_abs = 0;
  // 1-based index of the first zero row (<= rows) or, less rows, column; 0 if there is none. Then
  // no scales exist and the matrix is singular.
  int64_t zero_line = 0;
};

// Filled by MatrixOps::InspectFactor.
struct FactorStats {
  // Largest |u_ij|; where U has the unit diagonal, of diag(L) U. NaN if the factor holds a NaN.
  double max_abs_u = 0;
  // Smallest and largest modulus of a pivot, of the diagonal that is not the unit one. 0 for n = 0;
  // undefined where the factor holds a NaN.
  double min_pivot = 0;
  double max_pivot = 0;
  // Determinant of the factored matrix as sign * exp(log_abs). sign is 0 and log_abs -Inf for an
  // exactly singular one. n = 0: sign 1, log_abs 0.
  double det_sign = 1;
  double det_log_abs = 0;
  // |z^T (A - P^T L U)|_inf with the z of the probe; NaN or Inf if the factor holds one. 0 without
  // a probe.
  double probe = 0;
  // Where A is complex, the sign is a number of modulus 1: det_sign + i det_sign_imaginary.
  double det_sign_imaginary = 0;
};

// Filled by MatrixOps::Residual, WideRangeResidual and ComponentwiseError.
struct ResidualStats {
  // max over columns j of |b_j - op(A) x_j|_inf / (|op(A)|_inf |x_j|_inf + |b_j|_inf), 0/0 as 0;
  // NaN if anything in it is not finite.
  double backward_error = 0;
  // max over columns and rows i of |b - op(A) x|_i / (|op(A)| |x| + |b|)_i, small components
  // guarded as in LAPACK gerfs (numerics/componentwise.h), of complex numbers |Re| + |Im|; NaN if
  // anything in it is not finite.
  double componentwise_error = 0;
};

// Filled by MatrixOps::SetEntries.
struct EntryStats {
  int64_t first_outside = -1;       // number of the first entry that a has not; -1: none
  int64_t first_contradicted = -1;  // of the first whose value another one for it replaced
};

// Filled by MatrixOps::SumValues.
struct ValueStats {
  int64_t first_not_real = -1;  // line of the first value whose imaginary part had to be zero
};

// All matrices are in the memory of the context's device, column-major unless packed. Calls enqueue
// (see ExecutionContext); the status is INTERNAL or UNAVAILABLE when the device refuses the work,
// never a statement about the numbers.
class MatrixOps {
 public:
  virtual ~MatrixOps() = default;

  // out := in, converted to out's type and column-major order, and report().matrix := statistics of
  // `in`. Shapes agree, but that a real `out` of a complex `in` has twice as many columns: first
  // all real parts, then all imaginary ones. `out` may not overlap `in`, unless it is the same
  // memory with the same type and column-major layout: then only the statistics are taken.
  virtual absl::Status Import(const PackedMatrix& in, const AnyMatrix& out) = 0;

  // packed column- or row-major out := in, converted; a complex `layout` of a real `in` as above.
  // `out.data` is in device memory.
  virtual absl::Status Export(const AnyMatrix& in, const PackedMatrix& layout, std::byte* out) = 0;

  // out := diag(row) in diag(col), converted; each element as (row_i in_ij) col_j in float64, or
  // complex128; both matrices are real, or both complex. row, col: float64 scales in device memory,
  // null for the identity. `out` may be `in` itself, with the same type and ld.
  virtual absl::Status CopyScaled(const AnyMatrix& in, const double* row, const double* col,
                                  const AnyMatrix& out) = 0;

  // Powers of two r (rows) and c (cols) such that every row and column of diag(r) A diag(c) has its
  // largest entry in (1/2, 2]: LAPACK geequb. Exponents stay within +-1022. Fills report().scale;
  // scales of a zero line are 1; with a NaN or Inf in `a` all of this is unspecified.
  virtual absl::Status EquilibrationScales(const AnyMatrix& a, double* row, double* col) = 0;

  // Powers of two, with exponents within +-1022: down[j] brings the largest |row_i in_ij|, or part
  // of it where that is complex, of column j into [2^exponent, 2^(exponent + 1)), and up[j] is its
  // inverse. 1 for a column that is zero or not finite. row: float64 in device memory, null for
  // ones.
  virtual absl::Status ColumnScales(const AnyMatrix& in, const double* row, int exponent,
                                    double* down, double* up) = 0;

  // Begins the probe of the factorization of the n x n matrix `a`, which may be overwritten then.
  virtual absl::Status StartProbe(const AnyMatrix& a, const FactorProbe& probe) = 0;

  // Fills report().factor from an n x n factor in getrf's storage. `unit_in_u`: the unit diagonal
  // is U's. ipiv: n 1-based row interchanges; null for none. `probe`: that was started with the
  // matrix of the factor, or empty.
  virtual absl::Status InspectFactor(const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                                     const FactorProbe& probe) = 0;

  // r := b - op(a) x and report().residual. norm_op_a = |op(a)|_inf. a: rows x cols in any type; x,
  // b, r: in float64, or complex128 where `a` is complex, as the products are; r may not overlap
  // the others.
  virtual absl::Status Residual(const AnyMatrix& a, Op op, double norm_op_a, const AnyMatrix& x,
                                const AnyMatrix& b, const AnyMatrix& r) = 0;

  // The same where Residual's products or norm left float64's range, taken in a range wide enough
  // for all finite a, x and b; fills both figures of report().residual. Several times as slow.
  virtual absl::Status WideRangeResidual(const AnyMatrix& a, Op op, const AnyMatrix& x,
                                         const AnyMatrix& b, const AnyMatrix& r) = 0;

  // Fills report().residual.componentwise_error from residuals r and what AbsProduct made of the
  // same system.
  virtual absl::Status ComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w) = 0;

  // w := |op(a)| |x| + |b|, elementwise in float64: the componentwise scale of LAPACK gerfs, which
  // takes |Re| + |Im| of complex numbers.
  virtual absl::Status AbsProduct(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                                  const MatrixView<double>& w) = 0;

  // x := x + d.
  virtual absl::Status Add(const AnyMatrix& d, const AnyMatrix& x) = 0;

  // a(rows[k], cols[k]) := values[k] for all k, and report().entries. Entries outside of `a` are
  // left out; of several values for one entry any stays. Of a's type.
  virtual absl::Status SetEntries(const EntryList& entries, const AnyMatrix& a) = 0;

  // Sets every element of `out`, map.shape.elements of them without gaps, to the sum that `map`
  // says of `values`, one for each line, and report().values. Sums are of float64, or complex128,
  // then converted. Values and elements are of `dtype`.
  virtual absl::Status SumValues(const ValueMap& map, DType dtype, const std::byte* values,
                                 std::byte* out) = 0;

  // c := alpha op(a) b + beta c, in the one type of all three: BLAS gemm. With beta 0, c need not
  // hold numbers on entry. c may not overlap the others; each may be a block of a larger matrix.
  virtual absl::Status Multiply(double alpha, Op op, const AnyMatrix& a, const AnyMatrix& b,
                                double beta, const AnyMatrix& c) = 0;

  // Byte copies, enqueued: between device memories, and between device and host memory. A copy
  // overlaps other work only where the host side came from Device::staging_memory().
  virtual absl::Status CopyOnDevice(const void* from, void* to, size_t bytes) = 0;
  virtual absl::Status CopyToDevice(const void* host, void* device, size_t bytes) = 0;
  virtual absl::Status CopyToHost(const void* device, void* host, size_t bytes) = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_MATRIX_OPS_H_
