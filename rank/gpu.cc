// SPDX-License-Identifier: Apache-2.0

#include "rank/gpu.h"

#include <cstdlib>

#include "rank/engine.h"

namespace crout::rank {
namespace {

// Values of the libraries' enumerations.
constexpr int kOutOfMemory = 2;          // cudaErrorMemoryAllocation
constexpr unsigned kNonBlocking = 1;     // cudaStreamNonBlocking
constexpr int kHostToDevice = 1;         // cudaMemcpyHostToDevice
constexpr int kDeviceToHost = 2;         // cudaMemcpyDeviceToHost
constexpr unsigned kDefaultPinning = 0;  // cudaHostRegisterDefault
constexpr int kRowMajor = 1;             // CUSOLVERMP_GRID_MAPPING_ROW_MAJOR, as GridContext

GpuLibraries Load() {
  // Multicast memory over NVLink stays off. The ranks find each other on the loopback interface,
  // which other machines cannot reach.
  setenv("NCCL_NVLS_ENABLE", "0", 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  return LoadGpuLibraries();
}

}  // namespace

Gpu::Gpu(const GridContext& grid, int device)
    : name_("cuda:" + std::to_string(device)), libraries_(Load()) {
  CheckCuda(libraries_.cuda.set_device(device), "cudaSetDevice");
  CheckCuda(libraries_.cuda.create_stream(&stream_, kNonBlocking), "cudaStreamCreateWithFlags");
  CheckSolver(solver().create(&handle_, device, stream_), "cusolverMpCreate");
  int version = 0;
  CheckSolver(solver().version(handle_, &version), "cusolverMpGetVersion");
  CheckCusolvermpVersion(version);

  const auto check_nccl = [this](int code, const char* function) {
    if (code == 0) return;
    throw LibraryFailure(name_ + ": " + function + ": " + libraries_.nccl.error_text(code));
  };
  NcclUniqueId id = {};
  if (grid.rank() == 0) check_nccl(libraries_.nccl.make_id(&id), "ncclGetUniqueId");
  grid.SendToAll(&id, sizeof id);
  void* communicator = nullptr;
  check_nccl(libraries_.nccl.join(&communicator, grid.ranks(), id, grid.rank()),
             "ncclCommInitRank");
  CheckSolver(
      solver().create_grid(handle_, &grid_, communicator, grid.rows(), grid.cols(), kRowMajor),
      "cusolverMpCreateDeviceGrid");
  grid.FinishSends();
}

size_t Gpu::FreeBytes() const {
  size_t free = 0;
  size_t total = 0;
  CheckCuda(libraries_.cuda.memory_info(&free, &total), "cudaMemGetInfo");
  return free;
}

std::optional<Gpu::Memory> Gpu::Allocate(size_t bytes) const {
  void* memory = nullptr;
  const int code = libraries_.cuda.allocate(&memory, bytes);
  if (code == kOutOfMemory) {
    libraries_.cuda.last_error();  // or the library would find this error later
    return std::nullopt;
  }
  CheckCuda(code, "cudaMalloc");
  return Memory(memory, Free{&libraries_.cuda});
}

Gpu::Pinned Gpu::Pin(void* memory, size_t bytes) const {
  CheckCuda(libraries_.cuda.pin(memory, bytes, kDefaultPinning), "cudaHostRegister");
  return Pinned(memory, Unpin{&libraries_.cuda});
}

Gpu::Descriptor Gpu::Describe(int type, int64_t rows, int64_t cols, int64_t block,
                              int64_t ld) const {
  void* descriptor = nullptr;
  CheckSolver(
      solver().create_descriptor(&descriptor, grid_, type, rows, cols, block, block, 0, 0, ld),
      "cusolverMpCreateMatrixDesc");
  return Descriptor(descriptor, DestroyDescriptor{&libraries_.solver});
}

void Gpu::CopyToGpu(void* to, const void* from, size_t bytes) const {
  CheckCuda(libraries_.cuda.copy(to, from, bytes, kHostToDevice, stream_), "cudaMemcpyAsync");
}

void Gpu::CopyToHost(void* to, const void* from, size_t bytes) const {
  CheckCuda(libraries_.cuda.copy(to, from, bytes, kDeviceToHost, stream_), "cudaMemcpyAsync");
}

void Gpu::Synchronize() const {
  CheckCuda(libraries_.cuda.synchronize(stream_), "cudaStreamSynchronize");
}

void Gpu::CheckSolver(int code, const char* function) const {
  if (code == 0) return;
  throw LibraryFailure(name_ + ": " + function + ": cusolverStatus_t " + std::to_string(code));
}

void Gpu::CheckCuda(int code, const char* function) const {
  if (code == 0) return;
  throw LibraryFailure(name_ + ": " + function + ": " + libraries_.cuda.error_text(code));
}

}  // namespace crout::rank
