// Uploads to a GPU: pinned staging blocks that fill from the network while the blocks before them
// are copied to the device.
#ifndef CROUT_KERNELS_CUDA_UPLOAD_POOL_H_
#define CROUT_KERNELS_CUDA_UPLOAD_POOL_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_device_core.h"
#include "kernels/cuda/cuda_handles.h"
#include "kernels/device.h"
#include "kernels/memory.h"
#include "kernels/util/mutex.h"

namespace crout {

// The staging blocks of one device, its copy stream, and a thread that waits for copies so that
// nobody else does. Thread-safe. Outlives its uploads.
class UploadPool {
 public:
  // Takes CudaOptions::upload_blocks blocks from `pinned`.
  static absl::StatusOr<std::unique_ptr<UploadPool>> Create(CudaDeviceCore& core,
                                                            MemoryResource& pinned,
                                                            const CudaOptions& options);
  ~UploadPool();

  absl::StatusOr<std::unique_ptr<Uploader>> Start(std::span<std::byte> destination);

 private:
  friend class CudaUploader;

  struct Block {
    std::byte* data = nullptr;
    CudaEvent copied;
    class CudaUploader* owner = nullptr;  // null: its upload ended first
  };
  struct Waiter {
    class CudaUploader* uploader = nullptr;
    absl::AnyInvocable<void()> on_ready;
  };

  UploadPool(CudaDeviceCore& core, const CudaOptions& options)
      : core_(core),
        block_bytes_(options.upload_block_bytes),
        blocks_per_upload_(options.blocks_per_upload) {}
  absl::Status Initialize(MemoryResource& pinned, int count);

  // The loop of recycler_: gives copied blocks back and wakes uploads that wait for one.
  void Recycle();
  Block* TakeFree(CudaUploader& uploader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeReadyWaiter(Waiter& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Notify(Waiter waiter) ABSL_LOCKS_EXCLUDED(mutex_);

  // Constant after construction.
  CudaDeviceCore& core_;
  const size_t block_bytes_;
  const int blocks_per_upload_;
  Buffer memory_;  // of all blocks
  std::vector<Block> blocks_;
  CudaStream copies_;

  Mutex mutex_;
  CondVar wake_;      // the recycler: something may be there to do
  CondVar notified_;  // a destructor: notifying_ changed
  std::vector<Block*> free_ ABSL_GUARDED_BY(mutex_);
  std::deque<Block*> in_flight_ ABSL_GUARDED_BY(mutex_);  // about in the order of the copies
  std::deque<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  const CudaUploader* notifying_ ABSL_GUARDED_BY(mutex_) = nullptr;  // its on_ready is running
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread recycler_;  // the last member: it uses all others
};

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_UPLOAD_POOL_H_
