// SPDX-License-Identifier: Apache-2.0

// Teams of threads for the members of an irregular batch, and block sizes of their elimination.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_MEMBER_TEAM_H_
#define CROUT_KERNELS_CUDA_IRR_LU_MEMBER_TEAM_H_

#include <cstdint>
#include <limits>

namespace crout::cuda {

// The threads that process a member: a grid, a block of the given size, or a warp. The larger of
// the member's rows and columns alone determines the team, so results do not depend on the batch.
enum class MemberTeam : uint8_t { kGrid, kBlock512, kBlock256, kBlock128, kWarp };
inline constexpr int kMemberTeams = 5;

// Members per block of threads of team kWarp.
inline constexpr int kWarpsOfBlock = 4;

// The largest size that a team processes; kGrid has no limit.
constexpr int32_t LargestOf(MemberTeam team) {
  constexpr int32_t kLargest[] = {std::numeric_limits<int32_t>::max(), 1024, 512, 256, 32};
  return kLargest[static_cast<int>(team)];
}

constexpr int32_t SizeOfMember(int32_t rows, int32_t cols) {
  if (rows == 0 || cols == 0) return 0;
  return rows > cols ? rows : cols;
}

constexpr MemberTeam TeamOf(int32_t rows, int32_t cols) {
  int team = kMemberTeams - 1;
  while (SizeOfMember(rows, cols) > LargestOf(static_cast<MemberTeam>(team))) --team;
  return static_cast<MemberTeam>(team);
}

// Block sizes of a member's elimination. Cuts are at multiples of these sizes from the member's
// first element.
template <class T>
struct MemberBlocking {
  static constexpr bool kWide = sizeof(T) > 8;
  // Columns that are factored one by one, in registers.
  static constexpr int kPanel = kWide ? 8 : 16;
  // Columns after which one product updates the columns to the right.
  static constexpr int kBlock = 2 * kPanel;
  // Columns that are updated at a time, by a block of at least as many threads.
  static constexpr int kChunk = kWide ? 64 : 128;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_MEMBER_TEAM_H_
