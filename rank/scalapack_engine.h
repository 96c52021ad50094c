// SPDX-License-Identifier: Apache-2.0

// Dense factorizations and solves by ScaLAPACK.
#ifndef CROUT_RANK_SCALAPACK_ENGINE_H_
#define CROUT_RANK_SCALAPACK_ENGINE_H_

#include <memory>

#include "rank/engine.h"
#include "rank/grid_context.h"

namespace crout::rank {

// `grid` must outlive the engine.
std::unique_ptr<Engine> MakeScalapackEngine(const GridContext& grid);

}  // namespace crout::rank

#endif  // CROUT_RANK_SCALAPACK_ENGINE_H_
