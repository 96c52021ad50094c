// Uploads to a GPU: pinned staging blocks that fill from the network while the blocks before them
// are copied to the device.
#ifndef CROUT_KERNELS_CUDA_UPLOAD_POOL_H_
#define CROUT_KERNELS_CUDA_UPLOAD_POOL_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_device_core.h"
#include "kernels/cuda/cuda_handles.h"
#include "kernels/device.h"
#include "kernels/memory.h"
#include "kernels/staging_pool.h"

namespace crout {

// The staging blocks of one device and its copy stream. Thread-safe. Outlives its uploads.
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

  explicit UploadPool(CudaDeviceCore& core) : core_(core) {}
  absl::Status Initialize(MemoryResource& pinned, const CudaOptions& options);
  void AwaitCopy(int block);

  // Constant after construction.
  CudaDeviceCore& core_;
  CudaStream copies_;
  std::vector<CudaEvent> copied_;  // by block: its last copy
  // The last member: its thread uses the others.
  std::optional<StagingPool> staging_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_UPLOAD_POOL_H_
