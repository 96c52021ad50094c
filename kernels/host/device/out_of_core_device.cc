// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/out_of_core_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/host/device/host_context.h"
#include "kernels/host/device/host_info.h"
#include "kernels/host/methods.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

class OutOfCoreDevice final : public Device {
 public:
  OutOfCoreDevice(std::unique_ptr<Device> gpu, std::shared_ptr<Executor> executor,
                  std::unique_ptr<LuAlgorithm> algorithm)
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
            .factors_on = gpu_->info().name} {
    catalogue_.algorithms.push_back(std::move(algorithm));
    catalogue_.solvers.push_back(MakeGetrs(*executor_));
    catalogue_.solvers.push_back(MakeTrsm(*executor_));
  }

  const DeviceInfo& info() const override { return info_; }
  bool healthy() const override { return gpu_->healthy(); }
  absl::StatusOr<std::unique_ptr<ExecutionContext>> CreateContext() override {
    return MakeContext(*this, *executor_);
  }
  MemoryResource& memory() override { return gpu_->staging_memory(); }
  MemoryResource& staging_memory() override { return gpu_->staging_memory(); }
  DeviceMemoryStats memory_stats() const override {
    return {.driver_used_bytes = UsedMemoryBytes()};
  }
  absl::StatusOr<std::unique_ptr<Uploader>> StartUpload(std::span<std::byte> destination) override {
    return MakeUploader(destination);
  }
  const Catalogue& catalogue() const override { return catalogue_; }

 private:
  const std::unique_ptr<Device> gpu_;
  const std::shared_ptr<Executor> executor_;
  const DeviceInfo info_;
  Catalogue catalogue_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> MakeOutOfCoreDevice(std::unique_ptr<Device> gpu,
                                                            size_t gpu_bytes,
                                                            std::shared_ptr<Executor> executor) {
  CROUT_ASSIGN_OR_RETURN(std::unique_ptr<LuAlgorithm> algorithm, gpu->MakeOutOfCoreLu(gpu_bytes));
  return std::make_unique<OutOfCoreDevice>(std::move(gpu), std::move(executor),
                                           std::move(algorithm));
}

}  // namespace crout::host
