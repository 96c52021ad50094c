// SPDX-License-Identifier: Apache-2.0

// ScaLAPACK's methods, which run in the ranks of a group.
#ifndef CROUT_SERVER_GROUPS_SCALAPACK_H_
#define CROUT_SERVER_GROUPS_SCALAPACK_H_

#include <memory>

#include "kernels/lu_algorithm.h"
#include "server/groups/rank_group.h"
#include "server/groups/shared_arena.h"

namespace crout {

// Speed of a group's factorizations in float64 operations per second. Set before the first job.
struct GroupSpeed {
  double flops_per_second = 1e10;
};

// "scalapack": pXgetrf, right-looking LU with partial pivoting on blocks that are dealt out to a
// grid of ranks; unit diagonal in L. The matrix and its factors lie in the group's shared memory.
// Its workspace holds the blocks of all ranks. The arguments must outlive the method.
std::unique_ptr<LuAlgorithm> MakeScalapack(RankGroup& group, const SharedArena& arena,
                                           const GroupSpeed& speed);

// "scalapack": pXgetrs with such factors.
std::unique_ptr<TriangularSolver> MakeScalapackSolver(RankGroup& group, const SharedArena& arena,
                                                      const GroupSpeed& speed);

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_SCALAPACK_H_
