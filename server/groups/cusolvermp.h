// SPDX-License-Identifier: Apache-2.0

// cuSOLVERMp's methods, which run on the GPUs of a group's ranks.
#ifndef CROUT_SERVER_GROUPS_CUSOLVERMP_H_
#define CROUT_SERVER_GROUPS_CUSOLVERMP_H_

#include "kernels/catalogue.h"
#include "kernels/host/device/executor.h"
#include "server/groups/gpu_copies.h"
#include "server/groups/rank_group.h"
#include "server/groups/shared_arena.h"

namespace crout {

// Adds "cusolvermp": getrf, right-looking LU with partial pivoting on blocks that are dealt out to
// a grid of GPUs; unit diagonal in L; and getrs, which solves with such factors. The matrix and its
// factors lie in the group's shared memory. The ranks copy them to their GPUs, and keep factors
// there from their first solve on while memory permits. Transposed systems are solved by LAPACK on
// the executor, because the library solves none. The other arguments must outlive the catalogue.
void AddCusolvermp(RankGroup& group, const SharedArena& arena, GpuCopies& copies,
                   host::Executor& executor, Catalogue& catalogue);

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_CUSOLVERMP_H_
