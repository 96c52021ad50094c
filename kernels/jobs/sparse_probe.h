// SPDX-License-Identifier: Apache-2.0

// A probe of a sparse factor: what one solve with it shows.
#ifndef CROUT_KERNELS_JOBS_SPARSE_PROBE_H_
#define CROUT_KERNELS_JOBS_SPARSE_PROBE_H_

#include <span>

#include "absl/status/status.h"
#include "kernels/execution_context.h"
#include "kernels/factorization.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/operand.h"

namespace crout {

// Vectors of n elements of the probe, in the factor type as float64 or complex128, on the device
// and again in host memory.
inline constexpr int kSparseProbeVectors = 3;

// Solves with A z for the fixed random z of factor_probe.h, and sets summary.quality and
// summary.condition_signal. summary.n, factor_dtype and sparse are set; max_abs is the largest
// magnitude in A. `work` is device memory for kSparseProbeVectors vectors. Blocks until the device
// is done.
absl::Status ProbeSparseFactor(ExecutionContext& context, const Operand& a, FactorSolver& solver,
                               double max_abs, std::span<std::byte> work, FactorSummary& summary);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SPARSE_PROBE_H_
