// SPDX-License-Identifier: Apache-2.0

// NVIDIA's cuDSS, version 1, loaded at run time from LD_LIBRARY_PATH or the system's directories.
// Neither compiling nor linking Crout requires it.
#ifndef CROUT_KERNELS_CUDA_CUDSS_LIBRARY_H_
#define CROUT_KERNELS_CUDA_CUDSS_LIBRARY_H_

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace crout::cuda {

// The library's callbacks for allocating and freeing device memory; 0 means success. Layout of
// cudssDeviceMemHandler_t.
struct CudssMemoryHandler {
  void* context = nullptr;
  int (*allocate)(void* context, void** memory, size_t bytes, cudaStream_t stream) = nullptr;
  int (*free)(void* context, void* memory, size_t bytes, cudaStream_t stream) = nullptr;
  char name[64] = {};
};

// The functions of the library that Crout uses, with the types of its documentation: opaque
// pointers, and enumerations as int.
struct CudssFunctions {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, cudaStream_t stream);
  int (*set_memory)(void* handle, const CudssMemoryHandler* handler);
  int (*set_threading_layer)(void* handle, const char* library);
  int (*get_property)(int property, int* value);
  int (*config_create)(void** config);
  int (*config_destroy)(void* config);
  int (*config_set)(void* config, int parameter, const void* value, size_t bytes);
  int (*config_get)(void* config, int parameter, void* value, size_t bytes, size_t* written);
  int (*data_create)(void* handle, void** data);
  int (*data_destroy)(void* handle, void* data);
  int (*data_set)(void* handle, void* data, int parameter, const void* value, size_t bytes);
  int (*data_get)(void* handle, void* data, int parameter, void* value, size_t bytes,
                  size_t* written);
  int (*matrix_create_csr)(void** matrix, int64_t rows, int64_t columns, int64_t nonzeros,
                           const void* row_start, const void* row_end, const void* column,
                           const void* value, cudaDataType_t offset_type, cudaDataType_t index_type,
                           cudaDataType_t value_type, int kind, int view, int base);
  int (*matrix_create_dense)(void** matrix, int64_t rows, int64_t columns, int64_t ld,
                             const void* value, cudaDataType_t value_type, int layout);
  int (*matrix_set_values)(void* matrix, const void* value);
  int (*matrix_destroy)(void* matrix);
  int (*execute)(void* handle, int phase, void* config, void* data, void* a, void* x, void* b);
};

// Constant once loaded. Thread-safe.
class CudssLibrary {
 public:
  // Loads the library at the first call; it is never unloaded. NOT_FOUND if libcudss.so.1 is
  // missing or lacks a function; the message names the package to install.
  static absl::StatusOr<const CudssLibrary*> Load();

  const CudssFunctions& functions() const { return functions_; }
  // For example "cuDSS 1.0.0".
  const std::string& version() const { return version_; }
  // Path of the library of host threads: in the directory of cuDSS, or its bare name if that
  // directory is unknown.
  const std::string& threading_layer() const { return threading_layer_; }

 private:
  CudssLibrary() = default;
  static absl::StatusOr<const CudssLibrary*> LoadOnce();

  CudssFunctions functions_ = {};
  std::string version_;
  std::string threading_layer_;
};

// Converts a cuDSS status code; 0 is OK. RESOURCE_EXHAUSTED for a failed allocation, UNIMPLEMENTED
// for an unsupported request, UNAVAILABLE if the GPU is lost, otherwise INTERNAL. `call` names the
// failed function in the message.
absl::Status CudssStatus(int code, absl::string_view call);

}  // namespace crout::cuda

#define CROUT_RETURN_IF_CUDSS_ERROR(call, name) \
  CROUT_RETURN_IF_ERROR(::crout::cuda::CudssStatus((call), (name)))

#endif  // CROUT_KERNELS_CUDA_CUDSS_LIBRARY_H_
