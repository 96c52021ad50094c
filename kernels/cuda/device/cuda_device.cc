// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/cuda_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/cuda/device/cuda_memory.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/start_up.h"
#include "kernels/cuda/device/upload_pool.h"
#include "kernels/cuda/device/vendor_environment.h"
#include "kernels/cuda/getrf/getrf.h"
#include "kernels/cuda/icm/icm.h"
#include "kernels/cuda/methods.h"
#include "kernels/cuda/solve/solvers.h"
#include "kernels/memory/caching_resource.h"
#include "kernels/util/mutex.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

class CudaRegistration final : public HostRegistration {
 public:
  CudaRegistration(DeviceCore& core, void* start) : core_(core), start_(start) {}
  ~CudaRegistration() override {
    (void)cudaSetDevice(core_.ordinal());
    core_.Observe(CudaStatus(cudaHostUnregister(start_), "cudaHostUnregister")).IgnoreError();
  }

 private:
  DeviceCore& core_;
  void* const start_;
};

class CudaDevice final : public Device {
 public:
  // `memory_bytes`: the memory available to jobs and factors, and the capacity of the pool.
  CudaDevice(int ordinal, size_t memory_bytes, const Options& options)
      : core_(ordinal),
        memory_(std::make_unique<CudaDeviceMemory>(ordinal), memory_bytes, memory_bytes),
        staging_(std::make_unique<CudaPinnedMemory>(ordinal), options.max_cached_staging_bytes),
        options_(options) {}

  absl::Status Initialize();

  const DeviceInfo& info() const override { return info_; }
  bool healthy() const override { return core_.healthy(); }
  absl::StatusOr<std::unique_ptr<ExecutionContext>> CreateContext() override;
  MemoryResource& memory() override { return memory_; }
  MemoryResource& staging_memory() override { return staging_; }
  DeviceMemoryStats memory_stats() const override;
  absl::StatusOr<std::unique_ptr<Uploader>> StartUpload(std::span<std::byte> to) override {
    return uploads_->Start(to);
  }
  absl::StatusOr<std::unique_ptr<HostRegistration>> Register(std::span<std::byte> memory) override;
  const Catalogue& catalogue() const override { return catalogue_; }
  absl::StatusOr<std::unique_ptr<OutOfCoreLu>> MakeOutOfCoreLu(size_t device_bytes) override;

 private:
  absl::Status PinMemory(std::span<std::byte> memory);
  absl::Status Describe();
  void Calibrate(Context& context);

  mutable DeviceCore core_;  // mutable: any call may detect that the device is lost
  CachingResource memory_;
  CachingResource staging_;
  const Options options_;
  std::once_flag calibrated_;
  DeviceInfo info_;
  Catalogue catalogue_;
  std::unique_ptr<UploadPool> uploads_;
};

absl::Status CudaDevice::PinMemory(std::span<std::byte> memory) {
  CROUT_RETURN_IF_CUDA_ERROR(
      cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<HostRegistration>> CudaDevice::Register(
    std::span<std::byte> memory) {
  CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
  CROUT_RETURN_IF_ERROR(core_.Observe(PinMemory(memory)));
  return std::make_unique<CudaRegistration>(core_, memory.data());
}

absl::Status CudaDevice::Describe() {
  cudaDeviceProp properties;
  CROUT_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, core_.ordinal()));
  info_.kind = DeviceKind::kCuda;
  info_.name = absl::StrCat("cuda:", core_.ordinal());
  info_.description = properties.name;
  std::array<char, 32> pci_bus_id = {};
  CROUT_RETURN_IF_CUDA_ERROR(
      cudaDeviceGetPCIBusId(pci_bus_id.data(), pci_bus_id.size(), core_.ordinal()));
  info_.pci_bus_id = pci_bus_id.data();
  info_.memory_bytes = properties.totalGlobalMem;
  info_.parallelism = options_.streams;
  info_.types = kAllTypes;
  info_.has_sparse_ops = true;
  return absl::OkStatus();
}

absl::Status CudaDevice::Initialize() {
  CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
  CROUT_RETURN_IF_ERROR(core_.QueryLimits(options_.limits));
  CROUT_RETURN_IF_ERROR(Describe());
  CROUT_ASSIGN_OR_RETURN(auto getrf, CudaGetrf::Create(core_));
  catalogue_.algorithms.push_back(std::move(getrf));
  CROUT_ASSIGN_OR_RETURN(auto crout_lu, MakeCroutLu(core_));
  catalogue_.algorithms.push_back(std::move(crout_lu));
  CROUT_ASSIGN_OR_RETURN(auto pcmpp, MakePcmpp(core_));
  catalogue_.algorithms.push_back(std::move(pcmpp));
  CROUT_ASSIGN_OR_RETURN(auto pcm, MakePcm(core_));
  catalogue_.algorithms.push_back(std::move(pcm));
  catalogue_.algorithms.push_back(MakeBlockLu(core_));
  CROUT_ASSIGN_OR_RETURN(auto gauss_jordan, MakeGaussJordan(core_));
  catalogue_.direct_solvers.push_back(std::move(gauss_jordan));
  catalogue_.echelon_reducer = MakeEchelonReducer(core_);
  CROUT_ASSIGN_OR_RETURN(catalogue_.batch_lu, MakeIrrLu(core_));
  CROUT_ASSIGN_OR_RETURN(auto multifrontal, MakeMultifrontal(core_));
  catalogue_.sparse_lus.push_back(std::move(multifrontal));
  for (const bool pivoting : {false, true}) {
    if (!IcmFits(DType::kFloat64, core_.limits(), pivoting)) continue;
    catalogue_.algorithms.push_back(std::make_unique<CudaIcm>(core_, pivoting));
  }
  catalogue_.solvers.push_back(std::make_unique<CroutSolve>(core_));
  catalogue_.solvers.push_back(std::make_unique<CudaTrsm>(core_));
  catalogue_.solvers.push_back(std::make_unique<CudaGetrs>(core_));
  catalogue_.solvers.push_back(std::make_unique<CudaIs>(core_));
  catalogue_.solvers.push_back(MakeMultifrontalSolver(core_));
  AddCudss(core_, memory_, catalogue_);
  CROUT_ASSIGN_OR_RETURN(uploads_, UploadPool::Create(core_, staging_, options_));
  return absl::OkStatus();
}

DeviceMemoryStats CudaDevice::memory_stats() const {
  const CachingResource::Stats pool = memory_.stats();
  size_t free = 0;
  size_t total = 0;
  // A fenced device reports zero here; its health reports the reason.
  if (!core_.MakeCurrent().ok() || cudaMemGetInfo(&free, &total) != cudaSuccess) free = total = 0;
  return {pool.bytes_in_use, pool.bytes_cached, total - free};
}

absl::StatusOr<std::unique_ptr<ExecutionContext>> CudaDevice::CreateContext() {
  CROUT_ASSIGN_OR_RETURN(auto context, Context::Create(*this, core_));
  CROUT_RETURN_IF_ERROR(WarmUp(*context));
  if (options_.calibrate) std::call_once(calibrated_, [&] { Calibrate(*context); });
  return context;
}

absl::StatusOr<std::unique_ptr<OutOfCoreLu>> CudaDevice::MakeOutOfCoreLu(size_t device_bytes) {
  CROUT_ASSIGN_OR_RETURN(std::unique_ptr<ExecutionContext> context, CreateContext());
  CROUT_ASSIGN_OR_RETURN(Buffer workspace, memory_.Allocate(device_bytes));
  return cuda::MakeOutOfCoreLu(core_, std::move(context), std::move(workspace));
}

void CudaDevice::Calibrate(Context& context) {
  StoredCosts costs = CalibrateCosts(context, options_.state_directory);
  core_.SetCosts(std::move(costs.ratios));
  if (options_.log) options_.log(costs.report);
}

absl::StatusOr<size_t> UsableBytes(int ordinal, const Options& options) {
  if (options.memory_bytes != 0) return options.memory_bytes;
  cudaDeviceProp properties;
  CROUT_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, ordinal));
  return static_cast<size_t>(static_cast<double>(properties.totalGlobalMem) *
                             options.memory_fraction);
}

bool MakeSense(const Options& options) {
  return options.streams > 0 && options.upload_block_bytes > 0 && options.upload_blocks > 0 &&
         options.blocks_per_upload > 0 && options.memory_fraction > 0 &&
         options.memory_fraction <= 1;
}

// Enables direct access between the memory of this GPU and of every other GPU that this process has
// opened, in both directions. If the driver refuses, copies go through host memory (CUDA
// programming guide, "Peer-to-Peer Memory Copy").
absl::Status EnablePeerAccess(int ordinal) {
  static Mutex mutex;
  static auto* const opened = new std::vector<int>;  // never destroyed: used until the process ends
  MutexLock lock(&mutex);
  if (std::find(opened->begin(), opened->end(), ordinal) != opened->end()) return absl::OkStatus();
  for (const int other : *opened) {
    for (const auto& [reader, owner] : {std::pair(ordinal, other), std::pair(other, ordinal)}) {
      CROUT_RETURN_IF_CUDA_ERROR(cudaSetDevice(reader));
      if (cudaDeviceEnablePeerAccess(owner, /*flags=*/0) != cudaSuccess) (void)cudaGetLastError();
    }
  }
  opened->push_back(ordinal);
  CROUT_RETURN_IF_CUDA_ERROR(cudaSetDevice(ordinal));
  return absl::OkStatus();
}

}  // namespace

int CountCudaDevices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  (void)cudaGetLastError();
  return 0;
}

absl::Status CheckCudaDevices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return absl::OkStatus();
  (void)cudaGetLastError();
  if (error == cudaErrorInsufficientDriver) {
    return absl::NotFoundError(absl::StrCat(
        "the NVIDIA driver is not installed or is too old for CUDA ", CUDART_VERSION / 1000));
  }
  return absl::NotFoundError(
      absl::StrCat("the CUDA runtime reports: ",
                   cudaGetErrorString(error == cudaSuccess ? cudaErrorNoDevice : error)));
}

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(int ordinal, const Options& options) {
  if (!MakeSense(options)) {
    return absl::InvalidArgumentError("CUDA options: counts and sizes must be positive");
  }
  if (const int count = CountCudaDevices(); ordinal < 0 || ordinal >= count) {
    return absl::NotFoundError(absl::StrCat("no device cuda:", ordinal, "; usable GPUs: ", count));
  }
  ClearPrecisionVariables();
  CROUT_ASSIGN_OR_RETURN(const size_t memory_bytes, UsableBytes(ordinal, options));
  auto device = std::make_unique<CudaDevice>(ordinal, memory_bytes, options);
  CROUT_RETURN_IF_ERROR(device->Initialize());
  CROUT_RETURN_IF_ERROR(EnablePeerAccess(ordinal));
  return device;
}

}  // namespace crout::cuda
