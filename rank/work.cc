// SPDX-License-Identifier: Apache-2.0

#include "rank/work.h"

#include <algorithm>
#include <stdexcept>

#include "rank/mumps_engine.h"
#include "rank/scalapack_engine.h"

namespace crout::rank {

Worker::Worker(const GridContext& grid) {
  engines_.push_back(MakeScalapackEngine(grid));
  if (kHasMumps) engines_.push_back(MakeMumpsEngine(grid));
}

std::vector<std::string> Worker::methods() const {
  std::vector<std::string> methods;
  for (const auto& engine : engines_) methods.push_back(engine->method());
  return methods;
}

v1::Result Worker::Run(GroupMemory& memory, const v1::Job& job) {
  v1::Result result;
  result.set_job(job.id());
  memory.Begin(job.id());
  const auto engine = std::ranges::find_if(
      engines_, [&job](const auto& candidate) { return candidate->Accepts(job); });
  if (engine == engines_.end()) {
    result.set_error("the job is for no engine of this rank");
  } else {
    try {
      (*engine)->Run(memory, job, &result);
    } catch (const std::invalid_argument& error) {
      result.set_error(error.what());
    }
  }
  memory.End();
  return result;
}

void Worker::Forget(uint64_t factor) {
  for (const auto& engine : engines_) engine->Forget(factor);
}

}  // namespace crout::rank
