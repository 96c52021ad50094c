// SPDX-License-Identifier: Apache-2.0

// Workspace of the numeric phase.
#ifndef CROUT_KERNELS_HOST_MULTIFRONTAL_NUMERIC_WORKSPACE_H_
#define CROUT_KERNELS_HOST_MULTIFRONTAL_NUMERIC_WORKSPACE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/host/multifrontal/schedule.h"
#include "kernels/scalar.h"
#include "kernels/sparse/analysis.h"

namespace crout::host {

// Byte offsets of the workspace's parts, each at a multiple of a cache line.
struct NumericWorkspace {
  NumericWorkspace(const Analysis& analysis, const Schedule& schedule, DType dtype, int threads)
      : smallest(0),
        positions(RoundUp(analysis.n * SizeOf(RealOf(dtype)))),
        shared(positions + RoundUp(2 * analysis.n * sizeof(int32_t))),
        stacks(shared + RoundUp(schedule.shared_entries() * SizeOf(dtype))),
        stack_bytes(RoundUp(schedule.thread_entries() * SizeOf(dtype))),
        bytes(stacks + threads * stack_bytes) {}

  // Number of threads, at most `threads` and at least one, whose stacks fit into `most` bytes.
  int ThreadsWithin(size_t most, int threads) const {
    if (stack_bytes == 0 || most >= stacks + threads * stack_bytes) return threads;
    const size_t fit = most < stacks ? 0 : (most - stacks) / stack_bytes;
    return std::max(1, static_cast<int>(fit));
  }

  size_t smallest;   // smallest accepted pivot size, by position
  size_t positions;  // positions of A's rows, then of its columns
  size_t shared;     // shared contributions
  size_t stacks;     // contributions, one stack per thread
  size_t stack_bytes;
  size_t bytes;

 private:
  static constexpr size_t RoundUp(size_t bytes) {
    constexpr size_t kLine = 64;
    return (bytes + kLine - 1) / kLine * kLine;
  }
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_MULTIFRONTAL_NUMERIC_WORKSPACE_H_
