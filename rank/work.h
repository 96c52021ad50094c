// SPDX-License-Identifier: Apache-2.0

// Runs the jobs of a group in one rank.
#ifndef CROUT_RANK_WORK_H_
#define CROUT_RANK_WORK_H_

#include <cstdint>
#include <memory>
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
  // `grid` must outlive the worker.
  explicit Worker(const GridContext& grid);

  // Names of the methods that this build has.
  std::vector<std::string> methods() const;
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
