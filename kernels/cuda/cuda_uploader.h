// One upload through the staging blocks of an UploadPool.
#ifndef CROUT_KERNELS_CUDA_CUDA_UPLOADER_H_
#define CROUT_KERNELS_CUDA_CUDA_UPLOADER_H_

#include "kernels/cuda/upload_pool.h"

namespace crout {

class CudaUploader final : public Uploader {
 public:
  // `copied` is this upload's own event.
  CudaUploader(UploadPool& pool, std::span<std::byte> destination, CudaEvent copied)
      : pool_(pool), destination_(destination), copied_(std::move(copied)) {}
  ~CudaUploader() override;

  std::span<std::byte> Reserve(absl::AnyInvocable<void()> on_ready) override;
  absl::Status Commit(size_t bytes) override;
  absl::Status Pause() override;
  absl::Status Join(ExecutionContext& context) override;

 private:
  friend class UploadPool;

  // Sends the filled part of current_ on its way.
  absl::Status EnqueueCopy();
  void GiveUpBlocks() ABSL_LOCKS_EXCLUDED(pool_.mutex_);

  UploadPool& pool_;
  const std::span<std::byte> destination_;
  const CudaEvent copied_;  // recorded after each copy
  size_t committed_ = 0;
  size_t filled_ = 0;  // bytes of current_
  UploadPool::Block* current_ = nullptr;
  UploadPool::Block* granted_ ABSL_GUARDED_BY(pool_.mutex_) = nullptr;  // by the recycler
  int in_flight_ ABSL_GUARDED_BY(pool_.mutex_) = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_CUDA_UPLOADER_H_
