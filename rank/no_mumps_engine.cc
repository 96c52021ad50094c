// SPDX-License-Identifier: Apache-2.0

// Replaces mumps_engine.cc in builds without MUMPS.
#include "rank/mumps_engine.h"

namespace crout::rank {

const bool kHasMumps = false;

std::unique_ptr<Engine> MakeMumpsEngine(const GridContext&) { return nullptr; }

}  // namespace crout::rank
