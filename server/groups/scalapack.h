// SPDX-License-Identifier: Apache-2.0

// ScaLAPACK's methods, which run in the ranks of a group.
#ifndef CROUT_SERVER_GROUPS_SCALAPACK_H_
#define CROUT_SERVER_GROUPS_SCALAPACK_H_

#include "kernels/catalogue.h"
#include "server/groups/group_method.h"
#include "server/groups/rank_group.h"
#include "server/groups/shared_arena.h"

namespace crout {

// Adds "scalapack": pXgetrf, right-looking LU with partial pivoting on blocks that are dealt out to
// a grid of ranks; unit diagonal in L; and pXgetrs, which solves with such factors. The matrix and
// its factors lie in the group's shared memory. The workspaces hold the blocks of all ranks. The
// other arguments must outlive the catalogue.
void AddScalapack(RankGroup& group, const SharedArena& arena, const GroupSpeed& speed,
                  Catalogue& catalogue);

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_SCALAPACK_H_
