// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/host_device.h"

#include <memory>
#include <span>

#include "kernels/host/device/calibration.h"
#include "kernels/host/device/executor.h"
#include "kernels/host/device/host_context.h"
#include "kernels/host/device/host_info.h"
#include "kernels/host/device/host_memory.h"
#include "kernels/host/methods.h"
#include "kernels/memory/caching_resource.h"

namespace crout::host {
namespace {

class HostDevice final : public Device {
 public:
  explicit HostDevice(const Options& options)
      : shared_executor_(options.executor != nullptr ? options.executor
                                                     : MakeExecutor(options.threads)),
        memory_(std::make_unique<HostMemory>(), options.cached_bytes),
        info_{.kind = DeviceKind::kHost,
              .name = "host",
              .description = ProcessorName(),
              .memory_bytes = SystemMemoryBytes(),
              .parallelism = executor_.budget().total(),
              .types = kAllTypes,
              .has_sparse_ops = true} {
    catalogue_.algorithms.push_back(MakeGetrf(executor_));
    catalogue_.algorithms.push_back(MakeBlockLu(executor_));
    catalogue_.algorithms.push_back(MakeGem(executor_));
    catalogue_.algorithms.push_back(MakeCmpp(executor_));
    catalogue_.algorithms.push_back(MakeCm(executor_));
    catalogue_.algorithms.push_back(MakeIcmpp(executor_));
    catalogue_.algorithms.push_back(MakeIcm(executor_));
    catalogue_.solvers.push_back(MakeGetrs(executor_));
    catalogue_.solvers.push_back(MakeTrsm(executor_));
    catalogue_.solvers.push_back(MakeSs(executor_));
    catalogue_.solvers.push_back(MakeIs(executor_));
    catalogue_.direct_solvers.push_back(MakeGaussJordan(executor_));
    catalogue_.echelon_reducer = MakeEchelonReducer(executor_);
    catalogue_.batch_lu = MakeIrrLu(executor_);
    catalogue_.sparse_lus.push_back(MakeMultifrontal(executor_));
    catalogue_.solvers.push_back(MakeMultifrontalSolver(executor_));
    catalogue_.sparse_lus.push_back(MakeKlu(executor_));
    catalogue_.solvers.push_back(MakeKluSolver(executor_));
    Calibrate(*MakeContext(*this, executor_), catalogue_.algorithms);
  }

  const DeviceInfo& info() const override { return info_; }
  bool healthy() const override { return true; }
  absl::StatusOr<std::unique_ptr<ExecutionContext>> CreateContext() override {
    return MakeContext(*this, executor_);
  }
  MemoryResource& memory() override { return memory_; }
  MemoryResource& staging_memory() override { return memory_; }
  DeviceMemoryStats memory_stats() const override {
    const CachingResource::Stats pool = memory_.stats();
    return {pool.bytes_in_use, pool.bytes_cached, UsedMemoryBytes()};
  }
  absl::StatusOr<std::unique_ptr<Uploader>> StartUpload(std::span<std::byte> destination) override {
    return MakeUploader(destination);
  }
  const Catalogue& catalogue() const override { return catalogue_; }

 private:
  const std::shared_ptr<Executor> shared_executor_;
  Executor& executor_ = *shared_executor_;
  CachingResource memory_;
  const DeviceInfo info_;
  Catalogue catalogue_;
};

}  // namespace

std::shared_ptr<Executor> MakeExecutor(int threads) {
  return std::make_shared<Executor>(threads > 0 ? threads : AvailableCores());
}

std::unique_ptr<Device> MakeDevice(const Options& options) {
  return std::make_unique<HostDevice>(options);
}

}  // namespace crout::host
