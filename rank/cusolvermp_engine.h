// SPDX-License-Identifier: Apache-2.0

// Dense factorizations and solves by cuSOLVERMp on the GPUs of the ranks.
#ifndef CROUT_RANK_CUSOLVERMP_ENGINE_H_
#define CROUT_RANK_CUSOLVERMP_ENGINE_H_

#include <memory>

#include "rank/engine.h"
#include "rank/grid_context.h"

namespace crout::rank {

// All ranks call it together, each with the ordinal of its GPU. `grid` must outlive the engine.
// Throws std::runtime_error if the libraries are not installed or the GPU cannot be used.
std::unique_ptr<Engine> MakeCusolvermpEngine(const GridContext& grid, int device);

}  // namespace crout::rank

#endif  // CROUT_RANK_CUSOLVERMP_ENGINE_H_
