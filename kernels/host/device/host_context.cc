// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/host_context.h"

#include "absl/strings/str_cat.h"
#include "kernels/host/ops/host_ops.h"

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

}  // namespace

std::unique_ptr<ExecutionContext> MakeContext(Device& device, Executor& executor) {
  return std::make_unique<HostContext>(device, executor);
}

std::unique_ptr<Uploader> MakeUploader(std::span<std::byte> destination) {
  return std::make_unique<HostUploader>(destination);
}

}  // namespace crout::host
