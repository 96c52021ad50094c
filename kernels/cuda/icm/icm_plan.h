// How the iterative Crout method lays out its sections and its workspace.
#ifndef CROUT_KERNELS_CUDA_ICM_ICM_PLAN_H_
#define CROUT_KERNELS_CUDA_ICM_ICM_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/device_limits.h"
#include "kernels/dtype.h"
#include "kernels/lu_parameters.h"

namespace crout::cuda {

// Offsets are bytes from the workspace's start.
struct IcmPlan {
  int64_t n = 0;
  int64_t section = 0;   // rows and columns of a section
  int64_t block = 0;     // whole sections whose products go to the rest of the matrix at once
  int64_t sections = 0;  // along each side
  PivotCriterion criterion;
  bool sweeps_first = false;  // sections are swept whole before any search by columns
  bool searches = false;      // sections are searched by columns, if sweeping left a bad element
  bool warm = false;

  size_t state = 0;   // first
  size_t sweeps = 0;  // int32, sections^2
  size_t pivots = 0;  // int32, sections
  size_t candidates = 0;
  size_t moves = 0;
  size_t largest = 0;       // a section's columns
  size_t buffers[2] = {};   // a section each
  size_t below = 0;         // n x section
  size_t origin = 0;        // int32, n; from here on only of warm starts
  size_t permutations = 0;  // int64, 2 n
  size_t scratch = 0;       // int32, 2 n; and n elements for each multiprocessor
  size_t bytes = 0;
};

// Whether the GPU has the shared memory for sections of that type as large as those taken by
// default, and, of `pivoting`, for searching them.
bool IcmFits(DType dtype, const DeviceLimits& limits, bool pivoting);

// INVALID_ARGUMENT for an n whose workspace has no valid size.
absl::StatusOr<IcmPlan> PlanIcm(DType dtype, int64_t n, const LuParameters& parameters,
                                PivotRule default_rule, const DeviceLimits& limits);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_ICM_PLAN_H_
