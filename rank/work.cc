// SPDX-License-Identifier: Apache-2.0

#include "rank/work.h"

#include <algorithm>
#include <stdexcept>

#include "rank/cusolvermp_engine.h"
#include "rank/mumps_engine.h"
#include "rank/scalapack_engine.h"

namespace crout::rank {

Worker::Worker(const GridContext& grid, std::optional<int> gpu) {
  engines_.push_back(MakeScalapackEngine(grid));
  if (kHasMumps) engines_.push_back(MakeMumpsEngine(grid));
  if (gpu) engines_.push_back(MakeCusolvermpEngine(grid, *gpu));
}

uint64_t Worker::GpuBytes() const {
  uint64_t bytes = 0;
  for (const auto& engine : engines_) bytes += engine->GpuBytes();
  return bytes;
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
    } catch (const OutOfMemory& error) {
      result.set_error(error.what());
      result.set_error_kind(v1::ERROR_KIND_MEMORY);
    } catch (const LibraryFailure& error) {
      result.set_error(error.what());
      result.set_error_kind(v1::ERROR_KIND_LIBRARY);
    }
  }
  memory.End();
  return result;
}

void Worker::Forget(uint64_t factor) {
  for (const auto& engine : engines_) engine->Forget(factor);
}

}  // namespace crout::rank
