// SPDX-License-Identifier: Apache-2.0

// The order in which a GPU processes the members of an irregular batch.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_ORDER_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_ORDER_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/batch_member.h"
#include "kernels/cuda/irr_lu/member_team.h"

namespace crout::cuda {

// The largest dimensions of the members of MemberTeam::kGrid.
struct GridExtent {
  int32_t rows = 0;
  int32_t cols = 0;
  int32_t diagonal = 0;  // largest min(rows, cols) of a member
};

// Members without a team come first, then the members by team, and within each team by descending
// size. So the last thread blocks of a launch are short ones. In launches for later parts of the
// elimination, the members that still have work are the first.
struct IrrOrder {
  // Team t's members are order[begin[t], begin[t + 1]).
  std::array<int32_t, kMemberTeams + 1> begin = {};

  // SizeOfMember of kGrid's members, in their order.
  std::vector<int32_t> grid_sizes;
  GridExtent grid;

  // The number of members without a team; LargeMembers factors them.
  int32_t alone() const { return begin[0]; }
  // The number of members that are too large for a block of threads: those without a team and
  // kGrid's. They come first in the order.
  int32_t large() const { return begin[static_cast<int>(MemberTeam::kGrid) + 1]; }
  int32_t First(MemberTeam team) const { return begin[static_cast<int>(team)]; }
  int32_t Count(MemberTeam team) const {
    return begin[static_cast<int>(team) + 1] - begin[static_cast<int>(team)];
  }
};

// Writes the 0-based indices of all members to `order`, which has one element per member. Members
// of equal size are in the order of the batch. `is_alone` returns whether a member has no team.
// Runs on the host.
IrrOrder OrderMembers(
    std::span<const BatchMember> members, std::span<int32_t> order,
    absl::FunctionRef<bool(const BatchMember&)> is_alone = [](const BatchMember&) {
      return false;
    });

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_ORDER_H_
