// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/out_of_core_device.h"

#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "kernels/host/device/host_context.h"
#include "kernels/host/device/host_info.h"
#include "kernels/host/methods.h"
#include "kernels/util/mutex.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

// The staging memory of a GPU, counted, with errors that name the device.
class PinnedMemory final : public MemoryResource {
 public:
  PinnedMemory(MemoryResource& staging, std::string device)
      : staging_(staging), device_(std::move(device)) {}

  bool HasFree(size_t bytes) const override { return staging_.HasFree(bytes); }
  size_t TrimTo(size_t bytes) override { return staging_.TrimTo(bytes); }
  size_t bytes_in_use() const {
    MutexLock lock(&mutex_);
    return bytes_in_use_;
  }

 protected:
  absl::StatusOr<void*> DoAllocate(size_t bytes) override {
    absl::StatusOr<Buffer> block = staging_.Allocate(bytes);
    if (absl::IsResourceExhausted(block.status())) {
      return absl::ResourceExhaustedError(absl::StrCat(
          device_, " could not pin ", bytes, " bytes of host memory (", block.status().message(),
          "). It has pinned ", bytes_in_use(), " of the ", SystemMemoryBytes(),
          " bytes of the machine. Send a smaller matrix, release factors of this device, or lower "
          "--host-budget to the bytes that the system can pin"));
    }
    CROUT_RETURN_IF_ERROR(block.status());
    void* const data = block->data();
    MutexLock lock(&mutex_);
    blocks_.emplace(data, *std::move(block));
    bytes_in_use_ += bytes;
    return data;
  }
  void DoDeallocate(void* data, size_t bytes) override {
    std::map<void*, Buffer>::node_type block;  // destroyed after the lock is released
    MutexLock lock(&mutex_);
    block = blocks_.extract(data);
    bytes_in_use_ -= bytes;
  }

 private:
  MemoryResource& staging_;
  const std::string device_;
  mutable Mutex mutex_;
  std::map<void*, Buffer> blocks_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_in_use_ ABSL_GUARDED_BY(mutex_) = 0;
};

// An OutOfCoreLu of the GPU as an algorithm of the device.
class OutOfCoreAlgorithm final : public LuAlgorithm {
 public:
  OutOfCoreAlgorithm(std::string gpu, std::unique_ptr<OutOfCoreLu> lu)
      : gpu_(std::move(gpu)), lu_(std::move(lu)) {}

  const MethodTraits& traits() const override { return lu_->traits(); }

  // The workspace is in the memory of the GPU, and the algorithm holds it.
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                        const LuParameters& parameters) const override {
    if (n == 0) return 0;
    CROUT_ASSIGN_OR_RETURN(const size_t needed, lu_->LeastDeviceBytes(dtype, n, parameters));
    if (needed <= lu_->device_bytes()) return 0;
    return absl::ResourceExhaustedError(absl::StrCat(
        "the out-of-core LU of order ", n, " needs at least ", needed, " bytes of the memory of ",
        gpu_, ", and ", lu_->device_bytes(), " bytes are set aside. Raise --out-of-core-memory to ",
        needed, " bytes or more, or send a smaller matrix"));
  }

  double PredictSeconds(DType dtype, int64_t n) const override {
    constexpr double kTooLarge = 1e9;  // seconds
    if (n == 0) return 0;
    return WorkspaceBytes(dtype, n, {}).ok() ? lu_->PredictSeconds(dtype, n) : kTooLarge;
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> /*workspace*/, const LuParameters& parameters,
                      StopRequested stop) const override {
    DeviceReport& report = context.report();
    report.info = 0;
    if (a.rows == 0) return absl::OkStatus();
    MutexLock lock(&factoring_);
    CROUT_ASSIGN_OR_RETURN(const int64_t info, lu_->Factor(a, ipiv, parameters, report, stop));
    report.info = static_cast<int32_t>(info);
    return absl::OkStatus();
  }

 private:
  const std::string gpu_;
  mutable Mutex factoring_;
  const std::unique_ptr<OutOfCoreLu> lu_;
};

class OutOfCoreDevice final : public Device {
 public:
  OutOfCoreDevice(std::shared_ptr<Device> gpu, std::shared_ptr<Executor> executor,
                  std::unique_ptr<OutOfCoreLu> lu)
      : gpu_(std::move(gpu)),
        executor_(std::move(executor)),
        info_{
            .kind = DeviceKind::kHost,
            .name = absl::StrCat(gpu_->info().name, "+host"),
            .description = absl::StrCat(gpu_->info().description, " with matrices in host memory"),
            .memory_bytes = SystemMemoryBytes(),
            .parallelism = 1,
            .types = gpu_->info().types,
            .has_sparse_ops = true,
            .factors_on = gpu_->info().name},
        memory_(gpu_->staging_memory(), info_.name) {
    catalogue_.algorithms.push_back(
        std::make_unique<OutOfCoreAlgorithm>(gpu_->info().name, std::move(lu)));
    catalogue_.solvers.push_back(MakeGetrs(*executor_));
    catalogue_.solvers.push_back(MakeTrsm(*executor_));
  }

  const DeviceInfo& info() const override { return info_; }
  bool healthy() const override { return gpu_->healthy(); }
  absl::StatusOr<std::unique_ptr<ExecutionContext>> CreateContext() override {
    return MakeContext(*this, *executor_);
  }
  MemoryResource& memory() override { return memory_; }
  MemoryResource& staging_memory() override { return memory_; }
  DeviceMemoryStats memory_stats() const override {
    return {.pool_used_bytes = memory_.bytes_in_use(), .driver_used_bytes = UsedMemoryBytes()};
  }
  absl::StatusOr<std::unique_ptr<Uploader>> StartUpload(std::span<std::byte> destination) override {
    return MakeUploader(destination);
  }
  const Catalogue& catalogue() const override { return catalogue_; }

 private:
  const std::shared_ptr<Device> gpu_;
  const std::shared_ptr<Executor> executor_;
  const DeviceInfo info_;
  PinnedMemory memory_;
  Catalogue catalogue_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> MakeOutOfCoreDevice(std::shared_ptr<Device> gpu,
                                                            size_t gpu_bytes,
                                                            std::shared_ptr<Executor> executor) {
  CROUT_ASSIGN_OR_RETURN(std::unique_ptr<OutOfCoreLu> lu, gpu->MakeOutOfCoreLu(gpu_bytes));
  return std::make_unique<OutOfCoreDevice>(std::move(gpu), std::move(executor), std::move(lu));
}

}  // namespace crout::host
