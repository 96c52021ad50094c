// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/irr_order.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace crout::cuda {

IrrOrder OrderMembers(std::span<const BatchMember> members, std::span<int32_t> order,
                      absl::FunctionRef<bool(const BatchMember&)> is_alone) {
  assert(order.size() == members.size());
  const auto size = [&](int32_t i) { return SizeOfMember(members[i].rows, members[i].cols); };
  std::iota(order.begin(), order.end(), 0);
  const auto teams = std::stable_partition(order.begin(), order.end(),
                                           [&](int32_t i) { return is_alone(members[i]); });
  const auto larger = [&](int32_t i, int32_t j) { return size(i) > size(j); };
  std::stable_sort(order.begin(), teams, larger);
  std::stable_sort(teams, order.end(), larger);
  IrrOrder parts;
  parts.begin[0] = static_cast<int32_t>(teams - order.begin());
  for (int team = 0; team < kMemberTeams; ++team) {
    const auto end = std::partition_point(teams, order.end(), [&](int32_t i) {
      return TeamOf(members[i].rows, members[i].cols) <= static_cast<MemberTeam>(team);
    });
    parts.begin[team + 1] = static_cast<int32_t>(end - order.begin());
  }
  for (const int32_t i : order.subspan(parts.alone(), parts.Count(MemberTeam::kGrid))) {
    parts.grid_sizes.push_back(size(i));
    parts.grid.rows = std::max(parts.grid.rows, members[i].rows);
    parts.grid.cols = std::max(parts.grid.cols, members[i].cols);
    parts.grid.diagonal = std::max(parts.grid.diagonal, members[i].diagonal());
  }
  return parts;
}

}  // namespace crout::cuda
