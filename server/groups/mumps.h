// SPDX-License-Identifier: Apache-2.0

// MUMPS's methods, which run in the ranks of a group.
#ifndef CROUT_SERVER_GROUPS_MUMPS_H_
#define CROUT_SERVER_GROUPS_MUMPS_H_

#include "kernels/catalogue.h"
#include "server/groups/group_method.h"
#include "server/groups/rank_group.h"
#include "server/groups/shared_arena.h"

namespace crout {

// Adds "mumps": sparse multifrontal LU by MUMPS, in the order and with the scales of the analysis,
// and solves with its factors. MUMPS exchanges rows across ranks and delays pivots that are too
// small (threshold 0.01); it perturbs none. The ranks keep the factors in their own memory, for
// which the factor's block is reserved. After a loss of the group, the next solve factors the
// matrix again. Without MUMPS in crout-rank, adds an absent method. The other arguments must
// outlive the catalogue.
void AddMumps(RankGroup& group, SharedArena& arena, const GroupSpeed& speed, Catalogue& catalogue);

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_MUMPS_H_
