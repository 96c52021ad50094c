// SPDX-License-Identifier: Apache-2.0

// Sparse factorizations and solves by MUMPS.
#ifndef CROUT_RANK_MUMPS_ENGINE_H_
#define CROUT_RANK_MUMPS_ENGINE_H_

#include <memory>

#include "rank/engine.h"
#include "rank/grid_context.h"

namespace crout::rank {

// True if this build has MUMPS.
extern const bool kHasMumps;

// The engine keeps factors until they are forgotten. `grid` must outlive it. Returns null in a
// build without MUMPS.
std::unique_ptr<Engine> MakeMumpsEngine(const GridContext& grid);

}  // namespace crout::rank

#endif  // CROUT_RANK_MUMPS_ENGINE_H_
