// Accumulators in device memory with which the blocks of one kernel reduce to one result.
#ifndef CROUT_KERNELS_CUDA_OPS_REDUCTION_SCRATCH_H_
#define CROUT_KERNELS_CUDA_OPS_REDUCTION_SCRATCH_H_

#include <cstdint>

namespace crout::cuda {

// Every kernel finds `least` and `greatest` at these initial values and leaves them so: its last
// block resets them. Only integers are combined across blocks, by minimum and maximum, so that the
// order of the blocks cannot show in the result. A non-negative double is kept as its bits, which
// order as the numbers do, and a NaN above them all: a maximum cannot lose it.
struct ReductionScratch {
  static constexpr unsigned long long kNone = ~0ULL;

  unsigned long long least[4] = {kNone, kNone, kNone, kNone};
  unsigned long long greatest[4] = {0, 0, 0, 0};
  unsigned int blocks_done = 0;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_REDUCTION_SCRATCH_H_
