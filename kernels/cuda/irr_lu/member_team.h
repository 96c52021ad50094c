// Which threads work on a member of an irregular batch.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_MEMBER_TEAM_H_
#define CROUT_KERNELS_CUDA_IRR_LU_MEMBER_TEAM_H_

#include <cstdint>
#include <limits>

namespace crout::cuda {

// What works on a member, by the larger of its rows and columns alone, so that its results do not
// depend on its batch: a grid, a block of so many threads, or a warp.
enum class MemberTeam : uint8_t { kGrid, kBlock512, kBlock256, kBlock128, kWarp };
inline constexpr int kMemberTeams = 5;

// Members that a block of threads of kWarp works on.
inline constexpr int kWarpsOfBlock = 4;

// The largest that each works on; a grid takes what is beyond.
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

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_MEMBER_TEAM_H_
