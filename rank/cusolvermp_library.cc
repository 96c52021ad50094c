// SPDX-License-Identifier: Apache-2.0

#include "rank/cusolvermp_library.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace crout::rank {
namespace {

constexpr char kInstall[] =
    ". Install the PyPI packages nvidia-cusolvermp-cu13==0.8.0.3126 and nvidia-nccl-cu13, and "
    "start "
    "croutd with the directories of their libraries in LD_LIBRARY_PATH";

class Library {
 public:
  explicit Library(const char* name) : name_(name), library_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) throw std::runtime_error(Missing());
  }

  template <class F>
  void Find(const char* name, F** function) const {
    *function = reinterpret_cast<F*>(dlsym(library_, name));
    if (*function == nullptr) throw std::runtime_error(Missing());
  }

 private:
  std::string Missing() const {
    const char* const reason = dlerror();
    return "cannot load " + std::string(name_) + ": " +
           (reason != nullptr ? reason : "unknown error") + kInstall;
  }

  const char* const name_;
  void* const library_;
};

CudaFunctions LoadCuda() {
  const Library library("libcudart.so.13");
  CudaFunctions f;
  library.Find("cudaSetDevice", &f.set_device);
  library.Find("cudaMemGetInfo", &f.memory_info);
  library.Find("cudaMalloc", &f.allocate);
  library.Find("cudaFree", &f.free);
  library.Find("cudaStreamCreateWithFlags", &f.create_stream);
  library.Find("cudaStreamSynchronize", &f.synchronize);
  library.Find("cudaMemcpyAsync", &f.copy);
  library.Find("cudaHostRegister", &f.pin);
  library.Find("cudaHostUnregister", &f.unpin);
  library.Find("cudaGetLastError", &f.last_error);
  library.Find("cudaGetErrorString", &f.error_text);
  return f;
}

// "2.28.9" for 22809.
std::string NcclText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

NcclFunctions LoadNccl() {
  constexpr int kLeastVersion = 22800;
  constexpr int kNextMajor = 30000;
  const Library library("libnccl.so.2");
  NcclFunctions f;
  library.Find("ncclGetVersion", &f.version);
  library.Find("ncclGetUniqueId", &f.make_id);
  library.Find("ncclCommInitRank", &f.join);
  library.Find("ncclGetErrorString", &f.error_text);
  int version = 0;
  if (const int code = f.version(&version); code != 0) {
    throw std::runtime_error(std::string("ncclGetVersion: ") + f.error_text(code));
  }
  if (version < kLeastVersion || version >= kNextMajor) {
    throw std::runtime_error("NCCL has version " + NcclText(version) +
                             "; cuSOLVERMp 0.8 needs 2.28 or a newer 2.x" + kInstall);
  }
  return f;
}

CusolvermpFunctions LoadSolver() {
  const Library library("libcusolverMp.so.0");
  CusolvermpFunctions f;
  library.Find("cusolverMpCreate", &f.create);
  library.Find("cusolverMpGetVersion", &f.version);
  library.Find("cusolverMpCreateDeviceGrid", &f.create_grid);
  library.Find("cusolverMpCreateMatrixDesc", &f.create_descriptor);
  library.Find("cusolverMpDestroyMatrixDesc", &f.destroy_descriptor);
  library.Find("cusolverMpGetrf_bufferSize", &f.getrf_sizes);
  library.Find("cusolverMpGetrf", &f.getrf);
  library.Find("cusolverMpGetrs_bufferSize", &f.getrs_sizes);
  library.Find("cusolverMpGetrs", &f.getrs);
  return f;
}

}  // namespace

GpuLibraries LoadGpuLibraries() { return {LoadCuda(), LoadNccl(), LoadSolver()}; }

// Version 0.9 also needs cuBLASMp, and versions before 0.7.2 hang.
void CheckCusolvermpVersion(int version) {
  constexpr int kMinor = 8;
  if (version / 100 == kMinor) return;
  throw std::runtime_error("cuSOLVERMp has version " + std::to_string(version / 1000) + "." +
                           std::to_string(version / 100 % 10) + "." +
                           std::to_string(version % 100) + "; crout-rank needs 0.8" + kInstall);
}

}  // namespace crout::rank
