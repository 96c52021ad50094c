// SPDX-License-Identifier: Apache-2.0

// Runs the jobs of a group in one rank.
#ifndef CROUT_RANK_WORK_H_
#define CROUT_RANK_WORK_H_

#include <cstddef>
#include <span>

#include "crout/rank/v1/rank_service.pb.h"
#include "rank/grid_context.h"

namespace crout::rank {

// Runs `job` on the matrices in `memory`; all ranks must call it with the same job. Returns the
// result with an error if a field is out of range, before the ranks exchange any message: then all
// ranks return an error.
v1::Result RunJob(const GridContext& grid, std::span<std::byte> memory, const v1::Job& job);

}  // namespace crout::rank

#endif  // CROUT_RANK_WORK_H_
