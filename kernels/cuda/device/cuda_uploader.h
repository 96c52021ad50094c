// SPDX-License-Identifier: Apache-2.0

// One upload through the staging blocks of an UploadPool.
#ifndef CROUT_KERNELS_CUDA_DEVICE_CUDA_UPLOADER_H_
#define CROUT_KERNELS_CUDA_DEVICE_CUDA_UPLOADER_H_

#include <cstddef>
#include <span>
#include <utility>

#include "kernels/cuda/device/upload_pool.h"
#include "kernels/memory/staging_pool.h"

namespace crout::cuda {

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
  absl::Status Pause() override;
  absl::Status Join(ExecutionContext& context) override;

 private:
  // Enqueues the copy of the filled part of block_.
  absl::Status EnqueueCopy();

  UploadPool& pool_;
  const std::span<std::byte> destination_;
  const Event copied_;  // recorded after each copy
  StagingPool::Upload staging_;
  std::span<std::byte> block_;  // the current block; empty if there is none
  size_t committed_ = 0;
  size_t filled_ = 0;  // bytes filled in block_
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CUDA_UPLOADER_H_
