// The order in which a GPU takes the members of an irregular batch.
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

// The largest of the members of MemberTeam::kGrid.
struct GridExtent {
  int32_t rows = 0;
  int32_t cols = 0;
  int32_t diagonal = 0;  // min(rows, cols) of one of them
};

// First those that no team works on, then by team, and within each by descending size: the last
// thread blocks of a launch are short ones, and of a launch for a later part of the elimination
// those that still have something to do are the first.
struct IrrOrder {
  // Of the order: team t's members are at [begin[t], begin[t + 1]).
  std::array<int32_t, kMemberTeams + 1> begin = {};

  // Of those of kGrid, in their order: SizeOfMember.
  std::vector<int32_t> grid_sizes;
  GridExtent grid;

  // Members that no team works on: LargeMembers does.
  int32_t alone() const { return begin[0]; }
  // Members that are beyond a block of threads, the first of the order: those and kGrid's.
  int32_t large() const { return begin[static_cast<int>(MemberTeam::kGrid) + 1]; }
  int32_t First(MemberTeam team) const { return begin[static_cast<int>(team)]; }
  int32_t Count(MemberTeam team) const {
    return begin[static_cast<int>(team) + 1] - begin[static_cast<int>(team)];
  }
};

// Writes the 0-based indices of all members to `order`, which has as many elements; those of equal
// size are in the order of the batch. `is_alone`: of the member alone, whether no team works on it.
// On the host.
IrrOrder OrderMembers(
    std::span<const BatchMember> members, std::span<int32_t> order,
    absl::FunctionRef<bool(const BatchMember&)> is_alone = [](const BatchMember&) {
      return false;
    });

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_ORDER_H_
