// SPDX-License-Identifier: Apache-2.0

// Accumulators in device memory through which the blocks of one kernel reduce to one result.
#ifndef CROUT_KERNELS_CUDA_OPS_REDUCTION_SCRATCH_H_
#define CROUT_KERNELS_CUDA_OPS_REDUCTION_SCRATCH_H_

#include <cstdint>

namespace crout::cuda {

// Every kernel starts with these initial values of `least` and `greatest`, and its last block
// restores them. Blocks are combined only by integer minimum and maximum, so the result does not
// depend on their order. A non-negative double is stored as its bits, which compare like the
// numbers, with NaN above all of them: a maximum cannot lose a NaN.
struct ReductionScratch {
  static constexpr unsigned long long kNone = ~0ULL;

  unsigned long long least[4] = {kNone, kNone, kNone, kNone};
  unsigned long long greatest[4] = {0, 0, 0, 0};
  unsigned int blocks_done = 0;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_REDUCTION_SCRATCH_H_
