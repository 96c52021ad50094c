#include "kernels/host/host_device.h"

#include <utility>
#include <vector>

#include "kernels/caching_resource.h"
#include "kernels/host/block_lu.h"
#include "kernels/host/calibration.h"
#include "kernels/host/cmpp.h"
#include "kernels/host/executor.h"
#include "kernels/host/gauss_jordan.h"
#include "kernels/host/gem.h"
#include "kernels/host/getrf.h"
#include "kernels/host/host_info.h"
#include "kernels/host/host_memory.h"
#include "kernels/host/host_ops.h"
#include "kernels/host/icm.h"
#include "kernels/host/solvers.h"

namespace crout {
namespace {

class HostContext final : public ExecutionContext {
 public:
  HostContext(Device& device, HostExecutor& executor)
      : device_(device), ops_(executor, device.memory(), report_) {}

  Device& device() override { return device_; }
  MatrixOps& ops() override { return ops_; }
  DeviceReport& report() override { return report_; }
  absl::Status Synchronize() override { return absl::OkStatus(); }

 private:
  Device& device_;
  DeviceReport report_;
  HostOps ops_;
};

// Bytes go straight to their destination.
class HostUploader final : public Uploader {
 public:
  explicit HostUploader(std::span<std::byte> destination) : left_(destination) {}

  std::span<std::byte> Reserve(absl::AnyInvocable<void()>) override { return left_; }

  absl::Status Commit(size_t bytes) override {
    if (bytes > left_.size()) return absl::InvalidArgumentError("more bytes than were reserved");
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
  explicit HostDevice(const HostOptions& options)
      : executor_(options.threads > 0 ? options.threads : AvailableCores()),
        memory_(std::make_unique<HostMemory>(), options.cached_bytes),
        info_{DeviceKind::kHost, "host", ProcessorName(), SystemMemoryBytes(),
              executor_.budget().total()} {
    algorithms_.push_back(MakeHostGetrf(executor_));
    algorithms_.push_back(MakeHostBlockLu(executor_));
    algorithms_.push_back(MakeHostGem(executor_));
    algorithms_.push_back(MakeHostCmpp(executor_));
    algorithms_.push_back(MakeHostCm(executor_));
    algorithms_.push_back(MakeHostIcmpp(executor_));
    algorithms_.push_back(MakeHostIcm(executor_));
    solvers_.push_back(MakeHostGetrs(executor_));
    solvers_.push_back(MakeHostTrsm(executor_));
    solvers_.push_back(MakeHostSs(executor_));
    solvers_.push_back(MakeHostIs(executor_));
    direct_solvers_.push_back(MakeHostGaussJordan(executor_));
    HostContext context(*this, executor_);
    Calibrate(context, algorithms_);
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
  std::span<const std::unique_ptr<LuAlgorithm>> algorithms() const override { return algorithms_; }
  std::span<const std::unique_ptr<TriangularSolver>> solvers() const override { return solvers_; }
  std::span<const std::unique_ptr<DirectSolver>> direct_solvers() const override {
    return direct_solvers_;
  }

 private:
  HostExecutor executor_;
  CachingResource memory_;
  const DeviceInfo info_;
  std::vector<std::unique_ptr<LuAlgorithm>> algorithms_;
  std::vector<std::unique_ptr<TriangularSolver>> solvers_;
  std::vector<std::unique_ptr<DirectSolver>> direct_solvers_;
};

}  // namespace

std::unique_ptr<Device> MakeHostDevice(const HostOptions& options) {
  return std::make_unique<HostDevice>(options);
}

}  // namespace crout
