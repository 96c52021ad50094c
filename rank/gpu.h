// SPDX-License-Identifier: Apache-2.0

// The GPU of a rank.
#ifndef CROUT_RANK_GPU_H_
#define CROUT_RANK_GPU_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "rank/cusolvermp_library.h"
#include "rank/grid_context.h"

namespace crout::rank {

// One object for each process, used by one thread. All functions but the destructors throw
// LibraryFailure (engine.h) if a library fails.
class Gpu {
 public:
  // Memory of the GPU, freed by the destructor.
  struct Free {
    const CudaFunctions* cuda;
    void operator()(void* memory) const { cuda->free(memory); }
  };
  using Memory = std::unique_ptr<void, Free>;

  // Keeps host memory pinned until it is destroyed, so that copies are fast.
  struct Unpin {
    const CudaFunctions* cuda;
    void operator()(void* memory) const { cuda->unpin(memory); }
  };
  using Pinned = std::unique_ptr<void, Unpin>;

  // A matrix that is dealt out to the grid, for the library.
  struct DestroyDescriptor {
    const CusolvermpFunctions* solver;
    void operator()(void* descriptor) const { solver->destroy_descriptor(descriptor); }
  };
  using Descriptor = std::unique_ptr<void, DestroyDescriptor>;

  // Loads the libraries and connects the GPUs of all ranks, which call it together. `device`:
  // ordinal of this rank's GPU. Throws std::runtime_error if that is impossible.
  Gpu(const GridContext& grid, int device);

  const CusolvermpFunctions& solver() const { return libraries_.solver; }
  void* handle() const { return handle_; }
  // "cuda:2".
  const std::string& name() const { return name_; }

  size_t FreeBytes() const;
  // Returns nothing if the GPU has too little memory.
  std::optional<Memory> Allocate(size_t bytes) const;
  Pinned Pin(void* memory, size_t bytes) const;
  // A rows x cols matrix of a cudaDataType in blocks of this order.
  Descriptor Describe(int type, int64_t rows, int64_t cols, int64_t block, int64_t ld) const;

  // Copies start in order, on the stream of the library. The arguments must stay until
  // Synchronize().
  void CopyToGpu(void* to, const void* from, size_t bytes) const;
  void CopyToHost(void* to, const void* from, size_t bytes) const;
  void Synchronize() const;

  // Throws LibraryFailure if a function of cuSOLVERMp returned an error.
  void CheckSolver(int code, const char* function) const;

 private:
  void CheckCuda(int code, const char* function) const;

  const std::string name_;
  const GpuLibraries libraries_;
  CudaStream stream_ = nullptr;
  void* handle_ = nullptr;
  void* grid_ = nullptr;
};

}  // namespace crout::rank

#endif  // CROUT_RANK_GPU_H_
