// cuDSS's handle on one device, which all that is factored there shares.
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
enum class CudssThreads { kOne, kAllCores };  // of the host; all by its threading layer

// One for a device, since each takes 64 MiB of its memory for cuBLAS. What is enqueued runs on a
// stream of its own, one after the other: the library goes on using the stream that it began with
// when it is told of another one, and the results of a solve there are not waited for.
class CudssHandle {
 public:
  // Of the current device, which it has to be destroyed on; `library` outlives it. With kArenas
  // all device memory comes from the arena that is in use.
  static absl::StatusOr<std::unique_ptr<CudssHandle>> Create(const CudssLibrary& library,
                                                             CudssMemory memory,
                                                             CudssThreads threads);
  ~CudssHandle();
  CudssHandle(const CudssHandle&) = delete;  // The library has its address.
  CudssHandle& operator=(const CudssHandle&) = delete;

  // For whatever has to do with the handle. Held as long as the library works on the host, which in
  // an analysis it does for most of the time.
  Mutex mutex;

  const CudssFunctions& functions() const { return library_.functions(); }
  void* get() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return handle_; }
  // The arena of what is called next; may be null with kDriver.
  void Use(CudssArena* arena) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { arena_ = arena; }
  // Calls `execute`, which enqueues work by get(): it begins when what `stream` has is done, and
  // what comes next on `stream` waits for it, also for a part of it where that fails.
  absl::Status Enqueue(cudaStream_t stream, absl::FunctionRef<absl::Status()> execute)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  explicit CudssHandle(const CudssLibrary& library) : library_(library) {}

  const CudssLibrary& library_;
  Stream stream_;
  Event event_ ABSL_GUARDED_BY(mutex);
  void* handle_ ABSL_GUARDED_BY(mutex) = nullptr;
  CudssArena* arena_ = nullptr;  // read by the library, in calls that are made under the mutex
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CUDSS_HANDLE_H_
