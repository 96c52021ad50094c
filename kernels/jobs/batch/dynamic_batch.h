// SPDX-License-Identifier: Apache-2.0

// Dynamic batching: factors and solves small systems of several callers together, for any device.
#ifndef CROUT_KERNELS_JOBS_BATCH_DYNAMIC_BATCH_H_
#define CROUT_KERNELS_JOBS_BATCH_DYNAMIC_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/batch_lu.h"
#include "kernels/factorization.h"
#include "kernels/jobs/solve.h"

namespace crout {

// Properties of a system that are known before its payload arrives.
struct DynamicBatchShape {
  DType dtype = DType::kFloat64;  // type of A, its factors and B
  int64_t n = 0;                  // at least 1
  bool factors = false;           // factor A; otherwise a factor is given
  bool keeps_factor = false;
  bool keeps_matrix = false;
  int64_t nrhs = 0;  // 0: no solve
};

// Bytes of a system that runs alone, as charged. In a batch it needs less.
struct DynamicBatchBytes {
  size_t device = 0;  // including what stays with the factor
  size_t host = 0;    // for transfers to and from the device, without the answer
  size_t kept = 0;    // part of `device` that stays with the factor
};
// Returns the bytes of one system that runs alone. INVALID_ARGUMENT if a size overflows.
absl::StatusOr<DynamicBatchBytes> PlanDynamicBatch(const BatchLu& method,
                                                   const DynamicBatchShape& shape);
// Predicted seconds of one system that runs alone.
double PredictDynamicBatchSeconds(const BatchLu& method, const DynamicBatchShape& shape);

// The system of one caller, and its results.
struct DynamicBatchSystem {
  DynamicBatchShape shape;
  // A (n x n, host memory) if the system is to be factored. Otherwise `factor` is set: a
  // nonsingular factor in device memory, made by RunDynamicBatch.
  PackedMatrix matrix;
  const Factorization* factor = nullptr;
  // If true, a matrix that LAPACK's criteria would equilibrate is not factored; `needs_scaling`
  // is set instead.
  bool may_require_scaling = true;
  // B in host memory, n x nrhs, if there is one.
  PackedMatrix rhs;
  bool verify = true;       // measure the backward error; requires the factor's dense matrix
  std::byte* x = nullptr;   // receives X, in B's layout
  size_t device_bytes = 0;  // reserved for this system, as planned

  // INVALID_ARGUMENT for NaN or Inf in A or B, with the first position; otherwise the batch's
  // status.
  absl::Status status;
  bool needs_scaling = false;  // the system was not processed
  Factorization made;          // factor of A; has parts only if they are kept
  SolveSummary solved;         // unless A is singular
};

struct DynamicBatchTimings {
  double host_to_device = 0;
  double factor = 0;
  double solve = 0;
  double device_to_host = 0;
};

// Factors the matrices among `systems` as one batch, with partial pivoting, and solves op(A) X = B
// for systems with a B. All systems have the same type. The results of a system are bitwise
// independent of the others.
//
// Uses at most the device memory that the systems have reserved in total; splits the batch if it
// would need more. `host` supplies memory for transfers. Blocks until the device is done. A true
// `stop` ends all systems. The outcome of each system is in its `status`.
void RunDynamicBatch(ExecutionContext& context, const BatchLu& method, Op op,
                     std::span<DynamicBatchSystem* const> systems, MemoryResource& host,
                     StopRequested stop, DynamicBatchTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_BATCH_DYNAMIC_BATCH_H_
