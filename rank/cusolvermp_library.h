// SPDX-License-Identifier: Apache-2.0

// NVIDIA's cuSOLVERMp 0.8, NCCL and the CUDA runtime, loaded at run time from LD_LIBRARY_PATH or
// the system's directories. Neither compiling nor linking Crout requires them.
#ifndef CROUT_RANK_CUSOLVERMP_LIBRARY_H_
#define CROUT_RANK_CUSOLVERMP_LIBRARY_H_

#include <cstddef>
#include <cstdint>

namespace crout::rank {

using CudaStream = struct CUstream_st*;
struct NcclUniqueId {
  char bytes[128];
};

// The functions that Crout uses, with the types of their documentation: opaque pointers, and
// enumerations as int. 0 means success.
struct CudaFunctions {
  int (*set_device)(int device);
  int (*memory_info)(size_t* free, size_t* total);
  int (*allocate)(void** memory, size_t bytes);
  int (*free)(void* memory);
  int (*create_stream)(CudaStream* stream, unsigned flags);
  int (*synchronize)(CudaStream stream);
  int (*copy)(void* to, const void* from, size_t bytes, int kind, CudaStream stream);
  int (*pin)(void* memory, size_t bytes, unsigned flags);
  int (*unpin)(void* memory);
  int (*last_error)();  // resets it
  const char* (*error_text)(int code);
};

struct NcclFunctions {
  int (*version)(int* version);
  int (*make_id)(NcclUniqueId* id);
  int (*join)(void** communicator, int ranks, NcclUniqueId id, int rank);
  const char* (*error_text)(int code);
};

struct CusolvermpFunctions {
  int (*create)(void** handle, int device, CudaStream stream);
  int (*version)(void* handle, int* version);
  int (*create_grid)(void* handle, void** grid, void* communicator, int32_t rows, int32_t cols,
                     int mapping);
  int (*create_descriptor)(void** descriptor, void* grid, int type, int64_t rows, int64_t cols,
                           int64_t row_block, int64_t col_block, uint32_t row_source,
                           uint32_t col_source, int64_t ld);
  int (*destroy_descriptor)(void* descriptor);
  int (*getrf_sizes)(void* handle, int64_t rows, int64_t cols, void* a, int64_t ia, int64_t ja,
                     void* descriptor, int64_t* ipiv, int type, size_t* device, size_t* host);
  int (*getrf)(void* handle, int64_t rows, int64_t cols, void* a, int64_t ia, int64_t ja,
               void* descriptor, int64_t* ipiv, int type, void* device, size_t device_bytes,
               void* host, size_t host_bytes, int* info);
  int (*getrs_sizes)(void* handle, int op, int64_t n, int64_t nrhs, const void* a, int64_t ia,
                     int64_t ja, void* descriptor, const int64_t* ipiv, void* b, int64_t ib,
                     int64_t jb, void* descriptor_b, int type, size_t* device, size_t* host);
  int (*getrs)(void* handle, int op, int64_t n, int64_t nrhs, const void* a, int64_t ia, int64_t ja,
               void* descriptor, const int64_t* ipiv, void* b, int64_t ib, int64_t jb,
               void* descriptor_b, int type, void* device, size_t device_bytes, void* host,
               size_t host_bytes, int* info);
};

struct GpuLibraries {
  CudaFunctions cuda;
  NcclFunctions nccl;
  CusolvermpFunctions solver;
};

// Loads the libraries, which are never unloaded. Throws std::runtime_error if one is missing or
// NCCL has an unsuitable version; the message names the package to install.
GpuLibraries LoadGpuLibraries();

// Throws std::runtime_error unless this is a version of cuSOLVERMp that Crout supports. The library
// reports it only to the owner of a handle.
void CheckCusolvermpVersion(int version);

}  // namespace crout::rank

#endif  // CROUT_RANK_CUSOLVERMP_LIBRARY_H_
