// SPDX-License-Identifier: Apache-2.0

// The cuDSS handle of one device. All cuDSS factors of the device share it.
#ifndef CROUT_KERNELS_CUDA_CUDSS_HANDLE_H_
#define CROUT_KERNELS_CUDA_CUDSS_HANDLE_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cudss/arena.h"
#include "kernels/cuda/cudss/library.h"
#include "kernels/cuda/device/cuda_handles.h"
#include "kernels/util/mutex.h"

namespace crout::cuda {

enum class CudssMemory { kArenas, kDriver };
enum class CudssThreads { kOne, kAllCores };  // host threads; all through the threading layer

// One per device, because each handle uses 64 MiB of device memory for cuBLAS. All work runs on the
// handle's own stream, in order, and the stream is never replaced: after a replacement, the library
// would keep using its first stream and not wait for the results of a solve there.
class CudssHandle {
 public:
  // Creates a handle on the current device, which must also be current at its destruction.
  // `library` outlives the handle. With kArenas, all device memory comes from the arena in use.
  static absl::StatusOr<std::unique_ptr<CudssHandle>> Create(const CudssLibrary& library,
                                                             CudssMemory memory,
                                                             CudssThreads threads);
  ~CudssHandle();
  CudssHandle(const CudssHandle&) = delete;  // the library stores its address
  CudssHandle& operator=(const CudssHandle&) = delete;

  // Guards every use of the handle. Held while the library works on the host, which is most of the
  // time of an analysis.
  Mutex mutex;

  const CudssFunctions& functions() const { return library_.functions(); }
  void* get() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return handle_; }
  // Sets the arena for the following calls; may be null with kDriver.
  void Use(CudssArena* arena) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { arena_ = arena; }
  // Calls `execute`, which enqueues work through get(). The work begins after everything enqueued
  // on `stream`, and later work on `stream` waits for it. This holds for partial work too if
  // `execute` fails.
  absl::Status Enqueue(cudaStream_t stream, absl::FunctionRef<absl::Status()> execute)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  explicit CudssHandle(const CudssLibrary& library) : library_(library) {}

  const CudssLibrary& library_;
  Stream stream_;
  Event event_ ABSL_GUARDED_BY(mutex);
  void* handle_ ABSL_GUARDED_BY(mutex) = nullptr;
  CudssArena* arena_ = nullptr;  // read by the library, in calls made under the mutex
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CUDSS_HANDLE_H_
