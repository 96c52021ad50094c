// SPDX-License-Identifier: Apache-2.0

// Probe of a sparse factor: estimates its quality and condition from one solve.
#ifndef CROUT_KERNELS_JOBS_SPARSE_PROBE_H_
#define CROUT_KERNELS_JOBS_SPARSE_PROBE_H_

#include <span>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/factorization.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/operators.h"

namespace crout {

// Number of vectors of the probe. They have n elements in float64 or complex128, and exist on the
// device and in host memory.
inline constexpr int kSparseProbeVectors = 3;

// Values for the fields of the same names in FactorSummary.
struct SparseProbe {
  double quality = 0;
  double condition_signal = 0;
};

// Solves with A z for the fixed random z of factor_probe.h. In `factor`, n, factor_dtype and sparse
// are set; max_abs is the largest magnitude in A. `work` is device memory for kSparseProbeVectors
// vectors. Blocks until the device is done.
absl::StatusOr<SparseProbe> ProbeSparseFactor(ExecutionContext& context, const Operand& a,
                                              FactorSolver& solver, double max_abs,
                                              std::span<std::byte> work,
                                              const FactorSummary& factor);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SPARSE_PROBE_H_
