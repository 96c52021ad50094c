// kernels/cuda/cuda_device.h for programs: by way of the library, loaded at the first call.
#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/plugin.h"

namespace crout {
namespace {

struct Loaded {
  const CudaPlugin* plugin = nullptr;
  std::string error;
};

Loaded Load() {
  // Found through the program's RPATH. Never unloaded: its threads may outlive static objects.
  void* library = dlopen(kCudaPluginFile, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library == nullptr ? nullptr : dlsym(library, kCudaPluginSymbol);
  if (symbol == nullptr) return {nullptr, dlerror()};  // NOLINT(concurrency-mt-unsafe): once
  return {static_cast<const CudaPlugin*>(symbol), ""};
}

const Loaded& Library() {
  static const auto* const loaded = new Loaded(Load());
  return *loaded;
}

}  // namespace

int CountCudaDevices() {
  return Library().plugin == nullptr ? 0 : Library().plugin->count_devices();
}

absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(int ordinal, const CudaOptions& options) {
  if (Library().plugin != nullptr) return Library().plugin->make_device(ordinal, options);
  return absl::UnavailableError(
      absl::StrCat("the CUDA device cannot be loaded: ", Library().error));
}

}  // namespace crout
