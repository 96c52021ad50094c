// Solving AX = B with a method that leaves no factors, written once for every device.
#ifndef CROUT_KERNELS_JOBS_DIRECT_SOLVE_H_
#define CROUT_KERNELS_JOBS_DIRECT_SOLVE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/direct_solver.h"
#include "kernels/factorization.h"

namespace crout {

struct DirectSolveOptions {
  const DirectSolver* solver = nullptr;
  DType dtype = DType::kFloat64;  // that the method computes in
  bool verify = true;             // report the backward error: A is kept until it is known
};

// What the caller needs in order to trust a solution.
struct DirectSolveSummary {
  std::string solver;
  int64_t n = 0;
  DType dtype = DType::kFloat64;
  DType matrix_dtype = DType::kFloat64;
  int64_t info = 0;     // > 0: 1-based index of the first column without a pivot: A is singular
  double norm_one = 0;  // of A as it arrived
  double norm_inf = 0;
  // When verified and not singular, as in SolveSummary.
  std::optional<double> backward_error;
};

// Bytes of device memory for a SolveDirectly call, both uploads included; nothing is kept.
absl::StatusOr<JobBytes> DirectSolveBytes(const DirectSolveOptions& options,
                                          const PackedMatrix& matrix, const PackedMatrix& rhs);

// Solves A X = B: A (n x n) in `matrix_upload`, B (n x nrhs) in `rhs_upload`, device memory, packed
// as the shapes say; both are consumed and, like the upload of Factorize, need not have arrived. X
// goes to `out`, host memory of rhs_shape.bytes(), in B's type and layout; nothing is written there
// unless the solve gets that far. A singular matrix is a result with info > 0, without X. Blocks as
// Factorize does. INVALID_ARGUMENT for shapes that do not fit, and for NaN, Inf or an overflow of
// options.dtype in A or B, with row and column (0-based) of the first in payload order; CANCELLED
// when stopped.
absl::StatusOr<DirectSolveSummary> SolveDirectly(ExecutionContext& context, Buffer matrix_upload,
                                                 PackedMatrix matrix_shape, Buffer rhs_upload,
                                                 PackedMatrix rhs_shape,
                                                 const DirectSolveOptions& options, std::byte* out,
                                                 StopRequested stop, KernelTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_DIRECT_SOLVE_H_
