// SPDX-License-Identifier: Apache-2.0

// The Schur complement of the leading block of a matrix, and the factors of that block.
#ifndef CROUT_KERNELS_JOBS_SCHUR_H_
#define CROUT_KERNELS_JOBS_SCHUR_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/jobs/factorize.h"

namespace crout {

struct SchurOptions {
  FactorizeOptions factor;                   // factorization of A11
  const TriangularSolver* solver = nullptr;  // for A11 X = A12
  int64_t leading = 0;                       // k, the order of A11: 0 <= k <= n
  Layout layout = Layout::kColumnMajor;      // layout of S as delivered
};

// Summary of S: the figures by which the caller judges it.
struct SchurSummary {
  // Backward error of the block elimination, applied to a fixed random vector z. With the computed
  // X for A11^-1 A12 and v = (-X z, z), it is |(0, S z) - A v|_inf / (|A|_inf |v|_inf + |S z|_inf),
  // with products in float64 and 0/0 = 0. NaN if X or S contains NaN or Inf.
  double backward_error = 0;
  // Element growth, as in FactorSummary::pivot_growth: the larger of the growth in A11's factors
  // and max |s_ij| / max |a_ij|.
  double growth = 1;
  // True if the error is NaN or above kPoorQuality n eps, with the eps of the lower of the two
  // precisions, or if the growth is harmful (numerics/accuracy_warnings.h).
  bool is_poor = false;
};

struct SchurResult {
  Factorization factor;
  std::optional<SchurSummary> complement;  // unset if A11 is singular, or S is empty
};

// The plan of a Schur complement. Equal ids denote a shared buffer. Created by PlanSchur, then
// constant.
struct SchurPlan {
  SchurOptions options;
  PackedMatrix shape;       // A as received, without data
  PackedMatrix complement;  // S as delivered, in A's type, without data
  FactorizePlan factor;     // plan for A11
  BufferPlan buffers;
  BufferPlan::Id upload = 0;
  BufferPlan::Id matrix = 0;     // A column-major; the upload if it arrived so
  BufferPlan::Id work = 0;       // A12, then X, in the factor's type
  BufferPlan::Id x = 0;          // X in the matrix's type
  BufferPlan::Id workspace = 0;  // for the solver
  BufferPlan::Id probe = 0;      // v, A v, S z and zeros, n each, in the wide type
  BufferPlan::Id packed = 0;     // S as delivered; shares a row-major upload
  JobBytes bytes;                // `kept` stays with the factor of A11
  double seconds = 0;            // predicted
};

// Plans the job. INVALID_ARGUMENT if a size overflows, the shape is not square, k is out of range,
// or no algorithm or solver is given. FAILED_PRECONDITION if the solver does not support the
// algorithm's unit diagonal.
absl::StatusOr<SchurPlan> PlanSchur(const SchurOptions& options, PackedMatrix shape);

// With A = [A11 A12; A21 A22] and A11 of order k, factors A11 and computes S = A22 - A21 A11^-1
// A12. The solve uses the factor's type; the product and S use the matrix's type. `upload` is
// consumed and may still be arriving, as in Factorize. The factor equals the result of Factorize
// for A11 as a column-major upload.
//
// Writes S to `out`, host memory of plan.complement.bytes(). `out` is not written if A11 is
// singular (info > 0) or an error occurs. S contains Inf or NaN if the factorization or the product
// overflowed its type. For k = 0, S is A; for k = n, S is empty. Blocks like Factorize.
//
// INVALID_ARGUMENT for a k out of range, and for inputs that Factorize rejects: NaN or Inf in A, or
// an overflow of the factor's type in A11 or A12. The message has the position, except for an
// overflow in A12. FAILED_PRECONDITION if the solver cannot use the factors; CANCELLED if `stop`
// returned true.
absl::StatusOr<SchurResult> ComputeSchurComplement(ExecutionContext& context, const SchurPlan& plan,
                                                   Buffer upload, std::byte* out,
                                                   StopRequested stop, KernelTimings& timings);

// PlanSchur, followed by ComputeSchurComplement with that plan.
absl::StatusOr<SchurResult> ComputeSchurComplement(ExecutionContext& context, Buffer upload,
                                                   PackedMatrix shape, const SchurOptions& options,
                                                   std::byte* out, StopRequested stop,
                                                   KernelTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SCHUR_H_
