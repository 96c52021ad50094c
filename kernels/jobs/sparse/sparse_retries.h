// SPDX-License-Identifier: Apache-2.0

// Repeats the sparse factorization of one matrix until a probe of its factor, one solve that
// estimates quality and condition, finds it reliable.
#ifndef CROUT_KERNELS_JOBS_SPARSE_SPARSE_RETRIES_H_
#define CROUT_KERNELS_JOBS_SPARSE_SPARSE_RETRIES_H_

#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/factorization.h"
#include "kernels/jobs/sparse/sparse_attempt.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/operators.h"
#include "kernels/stop_requested.h"

namespace crout {

// Number of vectors of the probe. They have n elements in float64 or complex128, and exist on the
// device and in host memory.
inline constexpr int kSparseProbeVectors = 3;

// Values for the fields of the same names in FactorSummary.
struct SparseProbe {
  double quality = 0;
  double condition_signal = 0;
};

// The probe of a sparse factor: solves with A z for the fixed random z of factor_probe.h. In
// `factor`, n, factor_dtype and sparse are set; max_abs is the largest magnitude in A. `work` is
// device memory for kSparseProbeVectors vectors. Blocks until the device is done.
absl::StatusOr<SparseProbe> ProbeSparseFactor(ExecutionContext& context, const Operand& a,
                                              FactorSolver& solver, double max_abs,
                                              std::span<std::byte> work,
                                              const FactorSummary& factor);

struct ProbedFactor {
  SparseSummary sparse;
  // Unset if the factor is singular or overflowed, or if its elimination is partial.
  std::optional<SparseProbe> probe;
};

// Factors the matrix of `attempt` by its plan. If attempt.can_grow(), FactorizeSparse
// (sparse_factorize.h) lists the retries that follow a poor factor. The plan and the factor of the
// best run remain in `attempt`. `stats`: those of the matrix.
//
// If a retry ends with RESOURCE_EXHAUSTED, the previous factor remains. Other errors are those of
// SparseLu::Factor and Analyze; CANCELLED by `stop`.
absl::StatusOr<ProbedFactor> FactorWithRetries(SparseAttempt& attempt, const MatrixStats& stats,
                                               StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SPARSE_SPARSE_RETRIES_H_
