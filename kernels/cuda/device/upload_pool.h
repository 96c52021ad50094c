// SPDX-License-Identifier: Apache-2.0

// Uploads to a GPU through pinned staging blocks. Blocks fill from the network while earlier blocks
// are copied to the device.
#ifndef CROUT_KERNELS_CUDA_DEVICE_UPLOAD_POOL_H_
#define CROUT_KERNELS_CUDA_DEVICE_UPLOAD_POOL_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
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

class CudaUploader final : public Uploader {
 public:
  // `copied` is this upload's own event.
  CudaUploader(UploadPool& pool, std::span<std::byte> destination, Event copied)
      : pool_(pool),
        destination_(destination),
        copied_(std::move(copied)),
        staging_(*pool.staging_) {}
  ~CudaUploader() override;

  std::span<std::byte> Reserve(absl::AnyInvocable<void()> on_ready) override;
  absl::Status Commit(size_t bytes) override;
  absl::StatusOr<bool> Send(std::span<const std::byte> source) override;
  absl::Status Pause() override;
  absl::Status Join(ExecutionContext& context) override;

 private:
  // Enqueues the copy of the filled part of block_.
  absl::Status EnqueueCopy();
  // Enqueues the copy of registered memory, or of memory of the device.
  absl::Status EnqueueDirectCopy(std::span<const std::byte> source);

  UploadPool& pool_;
  const std::span<std::byte> destination_;
  const Event copied_;  // recorded after each copy
  StagingPool::Upload staging_;
  std::span<std::byte> block_;  // the current block; empty if there is none
  size_t committed_ = 0;
  size_t filled_ = 0;  // bytes filled in block_
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_UPLOAD_POOL_H_
