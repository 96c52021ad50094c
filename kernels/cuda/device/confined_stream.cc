// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/confined_stream.h"

#include <utility>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// Looks up driver functions by name, so that a machine without a GPU does not need the driver
// library. Null if the driver is older than the toolkit's header.
template <class F>
absl::Status Find(const char* name, F* function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  CROUT_RETURN_IF_CUDA_ERROR(
      cudaGetDriverEntryPointByVersion(name, &found, CUDART_VERSION, cudaEnableDefault, &result));
  *function = result == cudaDriverEntryPointSuccess ? reinterpret_cast<F>(found) : nullptr;
  return absl::OkStatus();
}

struct Driver {
  decltype(&cuDeviceGet) device;
  decltype(&cuDeviceGetDevResource) resource;
  decltype(&cuDevSmResourceSplitByCount) split;
  decltype(&cuDevResourceGenerateDesc) describe;
  decltype(&cuGreenCtxCreate) create;
  decltype(&cuGreenCtxDestroy) destroy;
  decltype(&cuGreenCtxStreamCreate) create_stream;

  static absl::StatusOr<std::optional<Driver>> Load() {
    Driver driver;
    CROUT_RETURN_IF_ERROR(Find("cuDeviceGet", &driver.device));
    CROUT_RETURN_IF_ERROR(Find("cuDeviceGetDevResource", &driver.resource));
    CROUT_RETURN_IF_ERROR(Find("cuDevSmResourceSplitByCount", &driver.split));
    CROUT_RETURN_IF_ERROR(Find("cuDevResourceGenerateDesc", &driver.describe));
    CROUT_RETURN_IF_ERROR(Find("cuGreenCtxCreate", &driver.create));
    CROUT_RETURN_IF_ERROR(Find("cuGreenCtxDestroy", &driver.destroy));
    CROUT_RETURN_IF_ERROR(Find("cuGreenCtxStreamCreate", &driver.create_stream));
    const bool complete = driver.device != nullptr && driver.resource != nullptr &&
                          driver.split != nullptr && driver.describe != nullptr &&
                          driver.create != nullptr && driver.destroy != nullptr &&
                          driver.create_stream != nullptr;
    return complete ? std::optional<Driver>(driver) : std::nullopt;
  }
};

}  // namespace

absl::StatusOr<std::optional<ConfinedStream>> ConfinedStream::Create(unsigned spared) {
  CROUT_ASSIGN_OR_RETURN(const std::optional<Driver> driver, Driver::Load());
  if (!driver) return std::nullopt;
  int ordinal = 0;
  CROUT_RETURN_IF_CUDA_ERROR(cudaGetDevice(&ordinal));
  CUdevice device = 0;
  CUdevResource all;
  CUdevResource part;
  CUdevResource rest;
  unsigned parts = 1;
  CUdevResourceDesc description = nullptr;
  CUgreenCtx context = nullptr;
  // A refusal means that this GPU cannot be partitioned, not that it is broken.
  if (driver->device(&device, ordinal) != CUDA_SUCCESS ||
      driver->resource(device, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS ||
      driver->split(&part, &parts, &all, &rest, CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
                    spared) != CUDA_SUCCESS ||
      parts != 1 || rest.type != CU_DEV_RESOURCE_TYPE_SM ||
      driver->describe(&description, &rest, 1) != CUDA_SUCCESS ||
      driver->create(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  Context owned(context, driver->destroy);
  CUstream stream = nullptr;
  if (driver->create_stream(&stream, context, CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  return ConfinedStream(std::move(owned), Stream(stream));
}

}  // namespace crout::cuda
