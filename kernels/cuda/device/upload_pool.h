// SPDX-License-Identifier: Apache-2.0

// Uploads to a GPU through pinned staging blocks. Blocks fill from the network while earlier blocks
// are copied to the device.
#ifndef CROUT_KERNELS_CUDA_DEVICE_UPLOAD_POOL_H_
#define CROUT_KERNELS_CUDA_DEVICE_UPLOAD_POOL_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/cuda/device/cuda_handles.h"
#include "kernels/device.h"
#include "kernels/memory.h"
#include "kernels/memory/staging_pool.h"

namespace crout::cuda {

// The staging blocks of one device, and its copy stream. Thread-safe. Outlives its uploads.
class UploadPool {
 public:
  // Allocates Options::upload_blocks blocks from `pinned`.
  static absl::StatusOr<std::unique_ptr<UploadPool>> Create(DeviceCore& core,
                                                            MemoryResource& pinned,
                                                            const Options& options);
  ~UploadPool();

  absl::StatusOr<std::unique_ptr<Uploader>> Start(std::span<std::byte> destination);

 private:
  friend class CudaUploader;

  explicit UploadPool(DeviceCore& core) : core_(core) {}
  absl::Status Initialize(MemoryResource& pinned, const Options& options);
  void AwaitCopy(int block);

  // Constant after construction.
  DeviceCore& core_;
  Stream copies_;
  std::vector<Event> copied_;  // the last copy of each block
  // Must be the last member, because its thread uses the others.
  std::optional<StagingPool> staging_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_UPLOAD_POOL_H_
