// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/host_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/host/device/calibration.h"
#include "kernels/host/device/executor.h"
#include "kernels/host/device/host_info.h"
#include "kernels/host/device/host_memory.h"
#include "kernels/host/methods.h"
#include "kernels/host/ops/host_ops.h"
#include "kernels/memory/caching_resource.h"

namespace crout::host {
namespace {

class HostContext final : public ExecutionContext {
 public:
  HostContext(Device& device, Executor& executor)
      : device_(device),
        ops_(executor, *this, report_),
        sparse_ops_(executor, *this, report_),
        krylov_ops_(executor) {}

  Device& device() override { return device_; }
  MatrixOps& ops() override { return ops_; }
  SparseOps* sparse_ops() override { return &sparse_ops_; }
  KrylovOps* krylov_ops() override { return &krylov_ops_; }
  DeviceReport& report() override { return report_; }
  absl::Status Synchronize() override { return absl::OkStatus(); }

 private:
  Device& device_;
  DeviceReport report_;
  HostOps ops_;
  HostSparseOps sparse_ops_;
  HostKrylovOps krylov_ops_;
};

// Receives bytes directly in their destination.
class HostUploader final : public Uploader {
 public:
  explicit HostUploader(std::span<std::byte> destination) : left_(destination) {}

  std::span<std::byte> Reserve(absl::AnyInvocable<void()>) override { return left_; }

  absl::Status Commit(size_t bytes) override {
    if (bytes > left_.size())
      return absl::InvalidArgumentError(
          absl::StrCat(bytes, " bytes were committed; only ", left_.size(), " were reserved"));
    left_ = left_.subspan(bytes);
    return absl::OkStatus();
  }

  absl::Status Join(ExecutionContext&) override {
    if (!left_.empty()) return absl::FailedPreconditionError("the upload is not complete");
    return absl::OkStatus();
  }

 private:
  std::span<std::byte> left_;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(const Options& options)
      : executor_(options.threads > 0 ? options.threads : AvailableCores()),
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
    HostContext context(*this, executor_);
    Calibrate(context, catalogue_.algorithms);
  }

  const DeviceInfo& info() const override { return info_; }
  bool healthy() const override { return true; }
  absl::StatusOr<std::unique_ptr<ExecutionContext>> CreateContext() override {
    return std::make_unique<HostContext>(*this, executor_);
  }
  MemoryResource& memory() override { return memory_; }
  MemoryResource& staging_memory() override { return memory_; }
  DeviceMemoryStats memory_stats() const override {
    const CachingResource::Stats pool = memory_.stats();
    return {pool.bytes_in_use, pool.bytes_cached, UsedMemoryBytes()};
  }
  absl::StatusOr<std::unique_ptr<Uploader>> StartUpload(std::span<std::byte> destination) override {
    return std::make_unique<HostUploader>(destination);
  }
  const Catalogue& catalogue() const override { return catalogue_; }

 private:
  Executor executor_;
  CachingResource memory_;
  const DeviceInfo info_;
  Catalogue catalogue_;
};

}  // namespace

std::unique_ptr<Device> MakeDevice(const Options& options) {
  return std::make_unique<HostDevice>(options);
}

}  // namespace crout::host
