// Small systems of several callers, factored and solved together, written once for every device.
#ifndef CROUT_KERNELS_JOBS_GATHERED_H_
#define CROUT_KERNELS_JOBS_GATHERED_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/batch_lu.h"
#include "kernels/factorization.h"
#include "kernels/jobs/solve.h"

namespace crout {

// What is known of a system before its payload.
struct GatheredShape {
  DType dtype = DType::kFloat64;  // of A, its factors and B
  int64_t n = 0;                  // at least 1
  bool factors = false;           // A is to be factored; else its factor is given
  bool keeps_factor = false;
  bool keeps_matrix = false;
  int64_t nrhs = 0;  // 0: nothing is solved
};

// Bytes that a system takes if it goes alone, as they are charged: in a batch it takes less.
struct GatheredBytes {
  size_t device = 0;  // what stays with the factor included
  size_t host = 0;    // on the way to the device and back, the answer aside
  size_t kept = 0;    // of `device`, what stays with the factor
};
absl::StatusOr<GatheredBytes> PlanGathered(const BatchLu& method, const GatheredShape& shape);
// Predicted, of one alone.
double PredictGatheredSeconds(const BatchLu& method, const GatheredShape& shape);

// One caller's system: what it is, and what came of it.
struct GatheredSystem {
  GatheredShape shape;
  // A in host memory, n x n, where it is to be factored; else a factor that this job made, not
  // singular, in the memory of the device.
  PackedMatrix matrix;
  const Factorization* factor = nullptr;
  // Whether a matrix that LAPACK's criteria would scale is left alone: `asks_for_scaling` then.
  bool may_ask_for_scaling = true;
  // B in host memory, n x nrhs, where there is one.
  PackedMatrix rhs;
  bool verify = true;       // the backward error; needs the factor's matrix, kept as a dense one
  std::byte* x = nullptr;   // where X goes, laid out as B
  size_t device_bytes = 0;  // reserved for it: as planned

  // INVALID_ARGUMENT for NaN or Inf in A or B, with the first position, and the batch's error.
  absl::Status status;
  bool asks_for_scaling = false;  // nothing was done
  Factorization made;             // of A; with parts only where they are kept
  SolveSummary solved;            // unless A is singular
};

struct GatheredTimings {
  double host_to_device = 0;
  double factor = 0;
  double solve = 0;
  double device_to_host = 0;
};

// Factors the matrices among `systems` as one batch, with partial pivoting, and solves
// op(A) X = B where there is a B. All are of one type. What becomes of a system has the same bits
// whatever the others are. Needs no more device memory than the systems have reserved together, or
// goes in parts. `host`: for what is on its way. Blocks until the device is done; `stop` ends all.
// How each one ended is in its status.
void RunGathered(ExecutionContext& context, const BatchLu& method, Op op,
                 std::span<GatheredSystem* const> systems, MemoryResource& host, StopRequested stop,
                 GatheredTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_GATHERED_H_
