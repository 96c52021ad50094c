// SPDX-License-Identifier: Apache-2.0

// Implements kernels/cuda/device/cuda_device.h for programs through the plugin library, which is
// loaded at the first call.
#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/cuda/device/loader_message.h"
#include "kernels/cuda/device/plugin.h"
#include "kernels/cuda/device/vendor_environment.h"

namespace crout::cuda {
namespace {

struct Loaded {
  const CudaPlugin* plugin = nullptr;
  std::string error;

  absl::Status status() const {
    if (plugin != nullptr) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot load the CUDA plugin: ", error));
  }
};

Loaded Load() {
  ClearPrecisionVariables();
  // Found through the program's RPATH. Never unloaded, because its threads may outlive static
  // objects.
  void* library = dlopen(kCudaPluginFile, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library == nullptr ? nullptr : dlsym(library, kCudaPluginSymbol);
  if (symbol == nullptr) return {nullptr, LoaderMessage()};
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

absl::Status CheckCudaDevices() {
  return Library().plugin == nullptr ? Library().status() : Library().plugin->check_devices();
}

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(int ordinal, const Options& options) {
  if (Library().plugin == nullptr) return Library().status();
  return Library().plugin->make_device(ordinal, options);
}

}  // namespace crout::cuda
