// SPDX-License-Identifier: Apache-2.0

// Interface of a parallel library that runs the jobs of a group.
#ifndef CROUT_RANK_ENGINE_H_
#define CROUT_RANK_ENGINE_H_

#include <cstdint>
#include <stdexcept>
#include <string>

#include "crout/rank/v1/rank_service.pb.h"
#include "rank/memory.h"

namespace crout::rank {

// A GPU has too little memory. All ranks throw it; those that have enough have no text.
class OutOfMemory : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A library failed in this rank. The other ranks may wait for this one until they are killed.
class LibraryFailure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// All ranks call the same functions in the same order, with the same arguments, on the thread that
// started MPI.
class Engine {
 public:
  virtual ~Engine() = default;

  // Name of its method: "scalapack".
  virtual std::string method() const = 0;
  // Returns true if the job is for this engine.
  virtual bool Accepts(const v1::Job& job) const = 0;
  // Runs an accepted job and fills the result's fields except the first two. Throws
  // std::invalid_argument if a field is out of range, before the ranks exchange any message: then
  // all ranks throw. Also throws OutOfMemory and LibraryFailure.
  virtual void Run(GroupMemory& memory, const v1::Job& job, v1::Result* result) = 0;
  // Frees a factor that the ranks keep. Does nothing if there is none.
  virtual void Forget(uint64_t /*factor*/) {}
  // Free memory of this rank's GPU; 0 without a GPU.
  virtual uint64_t GpuBytes() const { return 0; }
};

}  // namespace crout::rank

#endif  // CROUT_RANK_ENGINE_H_
