// SPDX-License-Identifier: Apache-2.0

#include "tests/support/fakes/fake_device.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "kernels/host/device/host_device.h"
#include "kernels/util/status_macros.h"
#include "tests/support/fakes/fake_out_of_core_lu.h"
#include "tests/support/fakes/plain_direct_solver.h"
#include "tests/support/fakes/preparing_solver.h"

namespace crout::testing {
namespace {

// Wraps an algorithm. Factor first passes a gate, and predicted times are multiplied by `slowness`.
class GatedAlgorithm final : public LuAlgorithm {
 public:
  GatedAlgorithm(const LuAlgorithm& inner, Gate& gate, const FakeDeviceOptions& options)
      : inner_(inner), gate_(gate), slowness_(options.slowness), stalls_at_(options.stalls_at) {}

  const MethodTraits& traits() const override { return inner_.traits(); }
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                        const LuParameters& parameters) const override {
    return inner_.WorkspaceBytes(dtype, n, parameters);
  }
  absl::StatusOr<size_t> ReportBytes(DType dtype, int64_t n,
                                     const LuParameters& parameters) const override {
    return inner_.ReportBytes(dtype, n, parameters);
  }
  double PredictSeconds(DType dtype, int64_t n) const override {
    return slowness_ * inner_.PredictSeconds(dtype, n);
  }
  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters& parameters,
                      StopRequested stop) const override {
    gate_.Pass();
    if (stalls_at_ > 0) {
      context.report().ReportColumns(stalls_at_);
      while (!stop()) std::this_thread::yield();
      return CheckNotStopped(stop);
    }
    return inner_.Factor(context, a, ipiv, workspace, parameters, stop);
  }
  absl::Status Finish(ExecutionContext& context, std::span<std::byte> workspace,
                      IterationReport* report) const override {
    return inner_.Finish(context, workspace, report);
  }

 private:
  const LuAlgorithm& inner_;
  Gate& gate_;
  const double slowness_;
  const int64_t stalls_at_;
};

class GatedSolver final : public TriangularSolver {
 public:
  GatedSolver(const TriangularSolver& inner, Gate& gate, const FakeDeviceOptions& options)
      : inner_(inner),
        gate_(gate),
        slowness_(std::ranges::count(options.slow_solvers, inner.name()) > 0 ? 1000 : 1) {}

  const MethodTraits& traits() const override { return inner_.traits(); }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override {
    return slowness_ * inner_.PredictSeconds(dtype, n, nrhs);
  }
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const override {
    return inner_.WorkspaceBytes(dtype, n, nrhs);
  }
  absl::StatusOr<size_t> SparseWorkspaceBytes(const Analysis& analysis, DType dtype,
                                              int64_t nrhs) const override {
    return inner_.SparseWorkspaceBytes(analysis, dtype, nrhs);
  }
  double PredictSparseSeconds(const Analysis& analysis, DType dtype, int64_t nrhs) const override {
    return inner_.PredictSparseSeconds(analysis, dtype, nrhs);
  }
  LineScales ScalesOf(const FactorView& factor) const override { return inner_.ScalesOf(factor); }
  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double tolerance,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override {
    gate_.Pass();
    return inner_.Solve(context, factor, op, tolerance, b, workspace);
  }

 private:
  const TriangularSolver& inner_;
  Gate& gate_;
  const double slowness_;
};

class GatedReducer final : public EchelonReducer {
 public:
  GatedReducer(const EchelonReducer& inner, Gate& gate) : inner_(inner), gate_(gate) {}

  const MethodTraits& traits() const override { return inner_.traits(); }
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t rows, int64_t cols) const override {
    return inner_.WorkspaceBytes(dtype, rows, cols);
  }
  double PredictSeconds(DType dtype, int64_t rows, int64_t cols) const override {
    return inner_.PredictSeconds(dtype, rows, cols);
  }
  absl::StatusOr<EchelonForm> Reduce(ExecutionContext& context, const AnyMatrix& a,
                                     int64_t eligible, PivotTolerance tolerance,
                                     std::span<std::byte> workspace,
                                     StopRequested stop) const override {
    gate_.Pass();
    return inner_.Reduce(context, a, eligible, tolerance, workspace, stop);
  }

 private:
  const EchelonReducer& inner_;
  Gate& gate_;
};

class GatedDirectSolver final : public DirectSolver {
 public:
  explicit GatedDirectSolver(Gate& gate) : gate_(gate) {}

  const MethodTraits& traits() const override { return inner_.traits(); }
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const override {
    return inner_.WorkspaceBytes(dtype, n, nrhs);
  }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override {
    return inner_.PredictSeconds(dtype, n, nrhs);
  }
  absl::Status Solve(ExecutionContext& context, const AnyMatrix& a, const AnyMatrix& b,
                     std::span<std::byte> workspace, StopRequested stop) const override {
    gate_.Pass();
    return inner_.Solve(context, a, b, workspace, stop);
  }

 private:
  const PlainDirectSolver inner_;
  Gate& gate_;
};

}  // namespace

class FakeDevice::Context final : public ExecutionContext {
 public:
  Context(FakeDevice& device, std::unique_ptr<ExecutionContext> inner)
      : device_(device), inner_(std::move(inner)) {
    ++device_.live_contexts_;
  }
  ~Context() override {
    EndUploads();
    --device_.live_contexts_;
  }

  // The next Synchronize ends the use of the block at `destination`.
  void JoinUpload(const void* destination) {
    device_.memory_.BeginUse(destination);
    joined_.push_back(destination);
  }

  Device& device() override { return device_; }
  MatrixOps& ops() override { return inner_->ops(); }
  SparseOps* sparse_ops() override {
    return device_.info().has_sparse_ops ? inner_->sparse_ops() : nullptr;
  }
  KrylovOps* krylov_ops() override { return inner_->krylov_ops(); }
  DeviceReport& report() override { return inner_->report(); }
  absl::Status Synchronize() override {
    EndUploads();
    if (!device_.healthy()) return absl::UnavailableError("the device broke down");
    return inner_->Synchronize();
  }

 private:
  void EndUploads() {
    for (const void* destination : joined_) device_.memory_.EndUse(destination);
    joined_.clear();
  }

  FakeDevice& device_;
  const std::unique_ptr<ExecutionContext> inner_;
  std::vector<const void*> joined_;
};

// Copies through one staging block. A real device uses several.
class FakeDevice::StagedUploader final : public Uploader {
 public:
  StagedUploader(FakeDevice& device, Buffer staging, std::span<std::byte> destination)
      : device_(device),
        staging_(std::move(staging)),
        destination_(destination.data()),
        left_(destination) {
    ++device_.live_uploaders_;
  }
  ~StagedUploader() override { --device_.live_uploaders_; }

  std::span<std::byte> Reserve(absl::AnyInvocable<void()> on_ready) override {
    if (device_.WaitForUploads(on_ready)) return {};
    return {staging_.data(), std::min(staging_.size(), left_.size())};
  }

  absl::Status Commit(size_t bytes) override {
    if (bytes > std::min(staging_.size(), left_.size())) {
      return absl::InvalidArgumentError("more bytes than were reserved");
    }
    if (!device_.healthy()) return absl::UnavailableError("the device broke down");
    std::memcpy(left_.data(), staging_.data(), bytes);
    left_ = left_.subspan(bytes);
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Send(std::span<const std::byte> registered) override {
    if (!device_.registers_) return false;
    if (registered.size() > left_.size()) return absl::InternalError("too many bytes");
    std::memcpy(left_.data(), registered.data(), registered.size());
    left_ = left_.subspan(registered.size());
    device_.direct_bytes_ += registered.size();
    return true;
  }

  absl::Status Join(ExecutionContext& context) override {
    if (!left_.empty()) return absl::FailedPreconditionError("the upload is not complete");
    device_.copy_gate_.Pass();
    if (destination_ != nullptr) static_cast<Context&>(context).JoinUpload(destination_);
    return absl::OkStatus();
  }

 private:
  FakeDevice& device_;
  const Buffer staging_;
  const void* const destination_;
  std::span<std::byte> left_;
};

class FakeDevice::Registration final : public HostRegistration {
 public:
  explicit Registration(FakeDevice& device) : device_(device) { ++device_.live_registrations_; }
  ~Registration() override { --device_.live_registrations_; }

 private:
  FakeDevice& device_;
};

FakeDevice::FakeDevice(const FakeDeviceOptions& options)
    : staging_block_bytes_(options.staging_block_bytes),
      registers_(options.registers),
      slowness_(options.slowness),
      stalls_at_(options.stalls_at),
      info_{.kind = options.kind,
            .name = options.name,
            .description = "a fake device",
            .memory_bytes = options.memory_bytes,
            .parallelism = options.parallelism,
            .types = options.types,
            .has_sparse_ops = options.has_sparse_ops,
            .ranks = options.ranks},
      host_(host::MakeDevice({.threads = 1, .cached_bytes = 0})),
      memory_(options.memory_bytes),
      staging_(options.staging_bytes) {
  for (const auto& algorithm : host_->algorithms()) {
    catalogue_.algorithms.push_back(
        std::make_unique<GatedAlgorithm>(*algorithm, factor_gate_, options));
  }
  for (const auto& solver : host_->solvers()) {
    catalogue_.solvers.push_back(std::make_unique<GatedSolver>(*solver, solve_gate_, options));
  }
  if (options.prepares) {
    catalogue_.solvers.push_back(
        std::make_unique<PreparingSolver>(*catalogue_.solvers.front(), options.prepared_error));
  }
  catalogue_.direct_solvers.push_back(std::make_unique<GatedDirectSolver>(solve_gate_));
  catalogue_.echelon_reducer =
      std::make_unique<GatedReducer>(*host_->echelon_reducer(), solve_gate_);
  if (options.register_more) options.register_more(catalogue_);
}

FakeDevice::~FakeDevice() = default;

absl::StatusOr<std::unique_ptr<ExecutionContext>> FakeDevice::CreateContext() {
  if (!healthy()) return absl::UnavailableError("the device broke down");
  CROUT_ASSIGN_OR_RETURN(auto inner, host_->CreateContext());
  return std::make_unique<Context>(*this, std::move(inner));
}

absl::StatusOr<std::unique_ptr<Uploader>> FakeDevice::StartUpload(
    std::span<std::byte> destination) {
  CROUT_ASSIGN_OR_RETURN(Buffer staging, staging_.Allocate(staging_block_bytes_));
  return std::make_unique<StagedUploader>(*this, std::move(staging), destination);
}

absl::StatusOr<std::unique_ptr<HostRegistration>> FakeDevice::Register(std::span<std::byte>) {
  if (!registers_) return nullptr;
  return std::make_unique<Registration>(*this);
}

absl::StatusOr<std::unique_ptr<OutOfCoreLu>> FakeDevice::MakeOutOfCoreLu(size_t device_bytes) {
  CROUT_ASSIGN_OR_RETURN(Buffer workspace, memory_.Allocate(device_bytes));
  return std::make_unique<FakeOutOfCoreLu>(*this, std::move(workspace), factor_gate_, slowness_,
                                           stalls_at_);
}

bool FakeDevice::WaitForUploads(absl::AnyInvocable<void()>& on_ready) {
  MutexLock lock(&mutex_);
  if (uploads_held_ && on_ready) waiting_uploads_.push_back(std::move(on_ready));
  return uploads_held_;
}

void FakeDevice::Wedge() {
  HoldUploads();
  for (Gate* gate : {&factor_gate_, &solve_gate_, &memory_.gate()}) gate->Close();
}

void FakeDevice::Recover() {
  for (Gate* gate : {&factor_gate_, &solve_gate_, &memory_.gate()}) gate->Open();
  ReleaseUploads();
}

void FakeDevice::HoldUploads() {
  MutexLock lock(&mutex_);
  uploads_held_ = true;
}

int FakeDevice::waiting_uploads() const {
  MutexLock lock(&mutex_);
  return static_cast<int>(waiting_uploads_.size());
}

void FakeDevice::ReleaseUploads() {
  std::vector<absl::AnyInvocable<void()>> waiting;
  {
    MutexLock lock(&mutex_);
    uploads_held_ = false;
    waiting.swap(waiting_uploads_);
  }
  for (auto& on_ready : waiting) on_ready();
}

}  // namespace crout::testing
