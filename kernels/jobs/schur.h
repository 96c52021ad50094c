// The Schur complement of the leading block of a matrix, and factors of that block.
#ifndef CROUT_KERNELS_JOBS_SCHUR_H_
#define CROUT_KERNELS_JOBS_SCHUR_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/jobs/factorize.h"

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
  // Whether the error is above kPoorQuality n eps, eps the larger of the two types', or NaN, or
  // growth is harmful (numerics/judgment.h).
  bool is_poor = false;
};

struct SchurResult {
  Factorization factor;
  std::optional<SchurSummary> complement;  // unset where A11 is singular, or S is empty
};

// A Schur complement, decided before it runs, and its buffers. Where two ids are equal one buffer
// serves for both. Made by PlanSchur, then constant.
struct SchurPlan {
  SchurOptions options;
  PackedMatrix shape;       // of A as it arrives, without data
  PackedMatrix complement;  // of S as it is delivered, of A's type, without data
  FactorizePlan factor;     // of A11
  BufferPlan buffers;
  BufferPlan::Id upload = 0;
  BufferPlan::Id matrix = 0;     // A by columns: the upload, where it arrived so
  BufferPlan::Id work = 0;       // A12, then X, in the factor's type
  BufferPlan::Id x = 0;          // X in the matrix's type
  BufferPlan::Id workspace = 0;  // of the solver
  BufferPlan::Id probe = 0;      // v, A v, S z and zeros, n each, in the wide type
  BufferPlan::Id packed = 0;     // S as it is delivered: an upload by rows has room for it
  JobBytes bytes;                // `kept` stays with the factor of A11
  double seconds = 0;            // predicted
};

// INVALID_ARGUMENT for a size that overflows, a shape that is not square, a k out of range, or
// options without an algorithm or a solver; FAILED_PRECONDITION where the solver does not support
// the algorithm's unit diagonal.
absl::StatusOr<SchurPlan> PlanSchur(const SchurOptions& options, PackedMatrix shape);

// With A = [A11 A12; A21 A22], A11 of order k, factors A11 and computes S = A22 - A21 A11^-1 A12:
// the solve in the factor's type, the product and S in the matrix's. `upload` is consumed, and need
// not have arrived, as in Factorize. The factor is what Factorize would return for A11 as a
// column-major upload; S goes to `out`, host memory of plan.complement.bytes(). It is not
// written where A11 is singular (info > 0), nor on an error; where the factorization or the product
// left the range of its type it holds Inf or NaN. k = 0: S is A; k = n: S is empty. Blocks as
// Factorize does. INVALID_ARGUMENT for a k out of range, and as in Factorize: a NaN or Inf anywhere
// in A with its position, an overflow of the factor's type in A11 with its position, in A12
// without. FAILED_PRECONDITION if the solver cannot use the factors; CANCELLED when stopped.
absl::StatusOr<SchurResult> ComputeSchurComplement(ExecutionContext& context, const SchurPlan& plan,
                                                   Buffer upload, std::byte* out,
                                                   StopRequested stop, KernelTimings& timings);

// PlanSchur, and then ComputeSchurComplement by that plan.
absl::StatusOr<SchurResult> ComputeSchurComplement(ExecutionContext& context, Buffer upload,
                                                   PackedMatrix shape, const SchurOptions& options,
                                                   std::byte* out, StopRequested stop,
                                                   KernelTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SCHUR_H_
