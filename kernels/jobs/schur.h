// The Schur complement of the leading block of a matrix, and factors of that block.
#ifndef CROUT_KERNELS_JOBS_SCHUR_H_
#define CROUT_KERNELS_JOBS_SCHUR_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/factorization.h"

namespace crout {

struct SchurOptions {
  FactorizeOptions factor;                   // how A11 is factored
  const TriangularSolver* solver = nullptr;  // for A11 X = A12
  int64_t leading = 0;                       // k, the order of A11: 0 <= k <= n
  Layout layout = Layout::kColumnMajor;      // of S as it is delivered
};

// What the caller needs in order to trust S.
struct SchurSummary {
  // Of the block elimination, applied to a fixed random vector z: with X as computed for A11^-1 A12
  // and v = (-X z, z), |(0, S z) - A v|_inf / (|A|_inf |v|_inf + |S z|_inf), the products in
  // float64, 0/0 as 0. NaN where X or S holds a NaN or Inf.
  double backward_error = 0;
  // The larger of the growth in A11's factors and of the largest |s_ij| over the largest |a_ij|, as
  // FactorSummary::pivot_growth.
  double growth = 1;
  // Whether the error is above kPoorQuality n eps, eps the larger of the two types', or NaN.
  bool is_poor = false;
};

struct SchurResult {
  Factorization factor;
  std::optional<SchurSummary> complement;  // unset where A11 is singular, or S is empty
};

// `kept` stays with the factor of A11; `peak` counts the upload.
absl::StatusOr<JobBytes> SchurBytes(const SchurOptions& options, DType matrix_dtype, int64_t n);

// S, without data: (n - k) x (n - k), of the matrix's type.
PackedMatrix SchurShape(const SchurOptions& options, DType matrix_dtype, int64_t n);

// With A = [A11 A12; A21 A22], A11 of order k, factors A11 and computes S = A22 - A21 A11^-1 A12:
// the solve in the factor's type, the product and S in the matrix's. `upload` is consumed, and need
// not have arrived, as in Factorize. The factor is what Factorize would return for A11 as a
// column-major upload; S goes to `out`, host memory of SchurShape().bytes(). It is not written
// where A11 is singular (info > 0), nor on an error; where the factorization or the product left
// the range of its type it holds Inf or NaN. k = 0: S is A; k = n: S is empty. Blocks as Factorize
// does. INVALID_ARGUMENT for a k out of range, and as in Factorize: a NaN or Inf anywhere in A with
// its position, an overflow of the factor's type in A11 with its position, in A12 without.
// FAILED_PRECONDITION if the solver cannot use the factors; CANCELLED when stopped.
absl::StatusOr<SchurResult> ComputeSchurComplement(ExecutionContext& context, Buffer upload,
                                                   PackedMatrix shape, const SchurOptions& options,
                                                   std::byte* out, StopRequested stop,
                                                   KernelTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SCHUR_H_
