// SPDX-License-Identifier: Apache-2.0

// The sections and the workspace of the iterative Crout method.
#ifndef CROUT_KERNELS_CUDA_ICM_ICM_PLAN_H_
#define CROUT_KERNELS_CUDA_ICM_ICM_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/device_limits.h"
#include "kernels/dtype.h"
#include "kernels/lu_parameters.h"

namespace crout::cuda {

// Places pieces one after the other. Sizes do not overflow for n < 2^21.
class WorkspaceLayout {
 public:
  // Returns the offset of the piece.
  size_t Take(size_t count, size_t size) {
    const size_t offset = total_;
    total_ += (count * size + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }
  size_t total() const { return total_; }

 private:
  static constexpr size_t kAlignment = 256;

  size_t total_ = 0;
};

// Offsets are in bytes from the start of the workspace.
struct IcmPlan {
  int64_t n = 0;
  int64_t section = 0;  // rows and columns of a section
  // Whole sections whose products are subtracted from the rest of the matrix at once.
  int64_t block = 0;
  int64_t sections = 0;  // per side
  PivotCriterion criterion;
  bool sweeps_first = false;  // sections are swept whole before any search by columns
  bool searches = false;      // sections are searched by columns if sweeping left a bad element
  bool warm = false;

  size_t state = 0;   // at the start of the workspace
  size_t sweeps = 0;  // int32, sections^2
  size_t pivots = 0;  // int32, sections
  size_t candidates = 0;
  size_t moves = 0;
  size_t largest = 0;       // one per column of a section
  size_t buffers[2] = {};   // one section each
  size_t below = 0;         // n x section
  size_t origin = 0;        // int32, n; this and the following are for warm starts only
  size_t permutations = 0;  // int64, 2 n
  size_t scratch = 0;       // int32, 2 n; and n elements per multiprocessor
  size_t bytes = 0;
};

// Returns true if the GPU has enough shared memory for sections of the default size in this type
// and, with `pivoting`, for searching them.
bool IcmFits(DType dtype, const DeviceLimits& limits, bool pivoting);

// INVALID_ARGUMENT if n is too large for a valid workspace size.
absl::StatusOr<IcmPlan> PlanIcm(DType dtype, int64_t n, const LuParameters& parameters,
                                PivotRule default_rule, const DeviceLimits& limits);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_ICM_PLAN_H_
