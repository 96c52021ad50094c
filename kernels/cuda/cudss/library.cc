// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/cudss/library.h"

#include <dlfcn.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/loader_message.h"

namespace crout::cuda {
namespace {

// Version 0.x has other enumeration values and another file name.
constexpr const char* kLibrary = "libcudss.so.1";
constexpr const char* kThreadingLayer = "libcudss_mtlayer_gomp.so.1";

// Values of cudssStatus_t.
constexpr int kAllocationFailed = 2;
constexpr int kNotSupported = 4;

template <class F>
bool Find(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  return function != nullptr;
}

bool FindAll(void* library, CudssFunctions& f) {
  return Find(library, "cudssCreate", f.create) && Find(library, "cudssDestroy", f.destroy) &&
         Find(library, "cudssSetStream", f.set_stream) &&
         Find(library, "cudssSetDeviceMemHandler", f.set_memory) &&
         Find(library, "cudssSetThreadingLayer", f.set_threading_layer) &&
         Find(library, "cudssGetProperty", f.get_property) &&
         Find(library, "cudssConfigCreate", f.config_create) &&
         Find(library, "cudssConfigDestroy", f.config_destroy) &&
         Find(library, "cudssConfigSet", f.config_set) &&
         Find(library, "cudssConfigGet", f.config_get) &&
         Find(library, "cudssDataCreate", f.data_create) &&
         Find(library, "cudssDataDestroy", f.data_destroy) &&
         Find(library, "cudssDataSet", f.data_set) && Find(library, "cudssDataGet", f.data_get) &&
         Find(library, "cudssMatrixCreateCsr", f.matrix_create_csr) &&
         Find(library, "cudssMatrixCreateDn", f.matrix_create_dense) &&
         Find(library, "cudssMatrixSetValues", f.matrix_set_values) &&
         Find(library, "cudssMatrixDestroy", f.matrix_destroy) &&
         Find(library, "cudssExecute", f.execute);
}

// The path of `library` in the directory of the library that defines `function`, or the bare name
// if that directory is unknown.
std::string Beside(const void* function, const char* library) {
  Dl_info info;
  if (dladdr(function, &info) == 0) return library;
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? library : path.substr(0, slash + 1) + library;
}

absl::Status NotFound() {
  return absl::NotFoundError(
      absl::StrCat("cuDSS 1 is not installed (", LoaderMessage(),
                   "). Install NVIDIA cuDSS, for example the PyPI package nvidia-cudss-cu13, and "
                   "start the server with the directory of libcudss.so.1 in LD_LIBRARY_PATH"));
}

}  // namespace

absl::StatusOr<const CudssLibrary*> CudssLibrary::Load() {
  static const auto* const loaded = new absl::StatusOr<const CudssLibrary*>(LoadOnce());
  return *loaded;
}

absl::StatusOr<const CudssLibrary*> CudssLibrary::LoadOnce() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NotFound();
  std::unique_ptr<CudssLibrary> cudss(new CudssLibrary);
  CudssFunctions& f = cudss->functions_;
  if (!FindAll(library, f)) return NotFound();
  int version[3] = {};
  for (int part = 0; part < 3; ++part) {
    CROUT_RETURN_IF_CUDSS_ERROR(f.get_property(part, &version[part]), "cudssGetProperty");
  }
  cudss->version_ = absl::StrCat("cuDSS ", version[0], ".", version[1], ".", version[2]);
  cudss->threading_layer_ = Beside(reinterpret_cast<const void*>(f.create), kThreadingLayer);
  return cudss.release();
}

absl::Status CudssStatus(int code, absl::string_view call) {
  if (code == 0) return absl::OkStatus();
  // cuDSS does not report the CUDA error; a lost GPU is detected by querying the runtime.
  if (absl::Status runtime = CudaStatus(cudaStreamQuery(cudaStreamLegacy), call);
      absl::IsUnavailable(runtime)) {
    return runtime;
  }
  const std::string message = absl::StrCat(call, ": cuDSS status ", code);
  if (code == kAllocationFailed) return absl::ResourceExhaustedError(message);
  if (code == kNotSupported) return absl::UnimplementedError(message);
  return absl::InternalError(message);
}

}  // namespace crout::cuda
