// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/shareable_memory.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda/device/cuda_handles.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/driver_function.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// The driver's functions for physical memory and its addresses.
struct Driver {
  decltype(&cuGetErrorName) error_name;
  decltype(&cuMemGetAllocationGranularity) granularity;
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) release;
  decltype(&cuMemAddressReserve) reserve;
  decltype(&cuMemAddressFree) free;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) set_access;
  decltype(&cuMemExportToShareableHandle) export_handle;

  static absl::StatusOr<Driver> Load() {
    Driver driver;
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuGetErrorName", &driver.error_name));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuMemGetAllocationGranularity", &driver.granularity));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuMemCreate", &driver.create));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuMemRelease", &driver.release));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuMemAddressReserve", &driver.reserve));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuMemAddressFree", &driver.free));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuMemMap", &driver.map));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuMemUnmap", &driver.unmap));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuMemSetAccess", &driver.set_access));
    CROUT_RETURN_IF_ERROR(
        FindDriverFunction("cuMemExportToShareableHandle", &driver.export_handle));
    const bool complete = driver.error_name != nullptr && driver.granularity != nullptr &&
                          driver.create != nullptr && driver.release != nullptr &&
                          driver.reserve != nullptr && driver.free != nullptr &&
                          driver.map != nullptr && driver.unmap != nullptr &&
                          driver.set_access != nullptr && driver.export_handle != nullptr;
    if (complete) return driver;
    return absl::UnimplementedError(
        "the NVIDIA driver is too old to share GPU memory. Share host memory instead");
  }

  absl::Status StatusOf(CUresult code, absl::string_view call) const {
    if (code == CUDA_SUCCESS) return absl::OkStatus();
    const char* name = nullptr;
    if (error_name(code, &name) != CUDA_SUCCESS) name = "an unknown error";
    const std::string message = absl::StrCat(call, ": ", name);
    switch (code) {
      case CUDA_ERROR_OUT_OF_MEMORY:
        return absl::ResourceExhaustedError(message);
      case CUDA_ERROR_NOT_SUPPORTED:
      case CUDA_ERROR_NOT_PERMITTED:
        return absl::UnimplementedError(absl::StrCat("this GPU cannot share memory (", message,
                                                     "). Share host memory instead"));
      default:
        return absl::InternalError(message);
    }
  }
};

class CudaShareableMemory final : public ShareableMemory {
 public:
  CudaShareableMemory(DeviceCore& core, const Driver& driver, size_t size)
      : core_(core), driver_(driver), size_(size) {}
  ~CudaShareableMemory() override;

  // Allocates, maps and clears the memory.
  absl::Status Create();

  std::span<std::byte> bytes() const override {
    return {reinterpret_cast<std::byte*>(address_), size_};
  }
  absl::StatusOr<OwnedFile> Export() const override;
  absl::Status CopyToHost(const std::byte* from, std::span<std::byte> to) override {
    return Copy(from, to.data(), to.size(), cudaMemcpyDeviceToHost);
  }
  absl::Status CopyFromHost(std::span<const std::byte> from, std::byte* to) override {
    return Copy(from.data(), to, from.size(), cudaMemcpyHostToDevice);
  }

 private:
  absl::Status Allocate();
  absl::Status Clear();
  absl::Status Copy(const void* from, void* to, size_t bytes, cudaMemcpyKind kind);
  absl::Status Transfer(const void* from, void* to, size_t bytes, cudaMemcpyKind kind);

  DeviceCore& core_;
  const Driver driver_;
  const size_t size_;
  Stream stream_;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;  // 0 until the addresses are reserved
  bool is_allocated_ = false;
  bool is_mapped_ = false;
};

absl::Status CudaShareableMemory::Create() {
  CROUT_ASSIGN_OR_RETURN(stream_, MakeStream());
  CROUT_RETURN_IF_ERROR(Allocate());
  return core_.Observe(Clear());
}

absl::Status CudaShareableMemory::Allocate() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = core_.ordinal()};
  size_t unit = 0;
  CROUT_RETURN_IF_ERROR(
      driver_.StatusOf(driver_.granularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                       "cuMemGetAllocationGranularity"));
  if (unit == 0 || size_ == 0 || size_ % unit != 0) {
    return absl::InternalError(
        absl::StrCat("GPU memory of ", size_, " bytes is no multiple of ", unit));
  }
  CROUT_RETURN_IF_ERROR(driver_.StatusOf(driver_.create(&handle_, size_, &properties, /*flags=*/0),
                                         absl::StrCat("cuMemCreate of ", size_, " bytes")));
  is_allocated_ = true;
  CROUT_RETURN_IF_ERROR(
      driver_.StatusOf(driver_.reserve(&address_, size_, /*alignment=*/0, /*addr=*/0, /*flags=*/0),
                       "cuMemAddressReserve"));
  CROUT_RETURN_IF_ERROR(driver_.StatusOf(
      driver_.map(address_, size_, /*offset=*/0, handle_, /*flags=*/0), "cuMemMap"));
  is_mapped_ = true;
  CUmemAccessDesc access = {};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return driver_.StatusOf(driver_.set_access(address_, size_, &access, /*count=*/1),
                          "cuMemSetAccess");
}

// The memory may have data of earlier allocations of this process.
absl::Status CudaShareableMemory::Clear() {
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(bytes().data(), 0, size_, stream_.get()));
  CROUT_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_.get()));
  return absl::OkStatus();
}

CudaShareableMemory::~CudaShareableMemory() {
  (void)cudaSetDevice(core_.ordinal());
  stream_.reset();
  // The next call on the device reports a failure again.
  if (is_mapped_) (void)driver_.unmap(address_, size_);
  if (address_ != 0) (void)driver_.free(address_, size_);
  if (is_allocated_) (void)driver_.release(handle_);
}

absl::StatusOr<OwnedFile> CudaShareableMemory::Export() const {
  CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
  int file = -1;
  CROUT_RETURN_IF_ERROR(driver_.StatusOf(
      driver_.export_handle(&file, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, /*flags=*/0),
      "cuMemExportToShareableHandle"));
  return OwnedFile(file);
}

absl::Status CudaShareableMemory::Copy(const void* from, void* to, size_t bytes,
                                       cudaMemcpyKind kind) {
  if (bytes == 0) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
  return core_.Observe(Transfer(from, to, bytes, kind));
}

absl::Status CudaShareableMemory::Transfer(const void* from, void* to, size_t bytes,
                                           cudaMemcpyKind kind) {
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(to, from, bytes, kind, stream_.get()));
  CROUT_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_.get()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> UuidOf(int ordinal) {
  decltype(&cuDeviceGet) get = nullptr;
  decltype(&cuDeviceGetUuid) get_uuid = nullptr;
  CROUT_RETURN_IF_ERROR(FindDriverFunction("cuDeviceGet", &get));
  CROUT_RETURN_IF_ERROR(FindDriverFunction("cuDeviceGetUuid", &get_uuid));
  CUdevice device = 0;
  CUuuid uuid = {};
  if (get == nullptr || get_uuid == nullptr || get(&device, ordinal) != CUDA_SUCCESS ||
      get_uuid(&uuid, device) != CUDA_SUCCESS) {
    return std::string();
  }
  return std::string(uuid.bytes, sizeof uuid.bytes);
}

absl::StatusOr<std::unique_ptr<ShareableMemory>> MakeShareableMemory(DeviceCore& core,
                                                                     size_t bytes) {
  CROUT_ASSIGN_OR_RETURN(const Driver driver, Driver::Load());
  auto memory = std::make_unique<CudaShareableMemory>(core, driver, bytes);
  CROUT_RETURN_IF_ERROR(memory->Create());
  return memory;
}

}  // namespace crout::cuda
