// SPDX-License-Identifier: Apache-2.0

// Runs the jobs of a group in one rank.
#ifndef CROUT_RANK_WORK_H_
#define CROUT_RANK_WORK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crout/rank/v1/rank_service.pb.h"
#include "rank/engine.h"
#include "rank/grid_context.h"
#include "rank/memory.h"

namespace crout::rank {

// All ranks call the same functions in the same order, with the same arguments.
class Worker {
 public:
  // `gpu`: ordinal of this rank's GPU; nothing if the ranks have none. `grid` must outlive the
  // worker. Throws std::runtime_error if the GPU cannot be used.
  Worker(const GridContext& grid, std::optional<int> gpu);

  // Names of the methods that this build has.
  std::vector<std::string> methods() const;
  // Free memory of the GPU; 0 without a GPU.
  uint64_t GpuBytes() const;
  // Runs `job` on the matrices in `memory`. Returns the result with an error if a field is out of
  // range, before the ranks exchange any message: then all ranks return an error.
  v1::Result Run(GroupMemory& memory, const v1::Job& job);
  // Frees a factor that the ranks keep. Does nothing if there is none.
  void Forget(uint64_t factor);

 private:
  std::vector<std::unique_ptr<Engine>> engines_;
};

}  // namespace crout::rank

#endif  // CROUT_RANK_WORK_H_
