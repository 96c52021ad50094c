// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/look_ahead.h"

#include <initializer_list>
#include <utility>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/driver_function.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

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
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuDeviceGet", &driver.device));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuDeviceGetDevResource", &driver.resource));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuDevSmResourceSplitByCount", &driver.split));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuDevResourceGenerateDesc", &driver.describe));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuGreenCtxCreate", &driver.create));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuGreenCtxDestroy", &driver.destroy));
    CROUT_RETURN_IF_ERROR(FindDriverFunction("cuGreenCtxStreamCreate", &driver.create_stream));
    const bool complete = driver.device != nullptr && driver.resource != nullptr &&
                          driver.split != nullptr && driver.describe != nullptr &&
                          driver.create != nullptr && driver.destroy != nullptr &&
                          driver.create_stream != nullptr;
    return complete ? std::optional<Driver>(driver) : std::nullopt;
  }
};

// On a smaller GPU, the trailing queue would lose more than a quarter of the multiprocessors.
constexpr int kMinMultiprocessors = 4 * LookAhead::kSparedMultiprocessors;

absl::Status Record(const Event& event, const Queue& queue) {
  return CudaStatus(cudaEventRecord(event.get(), queue.stream), "cudaEventRecord");
}

absl::Status Await(const Event& event, std::initializer_list<Queue> queues) {
  for (const Queue& queue : queues) {
    CROUT_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(queue.stream, event.get(), 0));
  }
  return absl::OkStatus();
}

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

absl::Status Queue::Bind() const {
  // Set the stream first, because that resets cuBLAS to its own workspace.
  CROUT_RETURN_IF_CUBLAS_ERROR(cublasSetStream(cublas, stream));
  if (workspace.empty()) return absl::OkStatus();
  CROUT_RETURN_IF_CUBLAS_ERROR(cublasSetWorkspace(cublas, workspace.data(), workspace.size()));
  return absl::OkStatus();
}

absl::StatusOr<LookAhead> LookAhead::CreateBorrower(cudaStream_t main, const DeviceLimits& limits) {
  LookAhead ahead;
  ahead.main_.stream = main;
  CROUT_ASSIGN_OR_RETURN(ahead.stream_, MakeUrgentCudaStream());
  ahead.urgent_.stream = ahead.stream_.get();
  if (limits.multiprocessors >= kMinMultiprocessors) {
    CROUT_ASSIGN_OR_RETURN(ahead.confined_, ConfinedStream::Create(kSparedMultiprocessors));
  }
  if (ahead.confined_) ahead.confined_queue_.stream = ahead.confined_->get();
  CROUT_ASSIGN_OR_RETURN(ahead.main_event_, MakeEvent());
  CROUT_ASSIGN_OR_RETURN(ahead.urgent_event_, MakeEvent());
  CROUT_ASSIGN_OR_RETURN(ahead.trailing_event_, MakeEvent());
  return ahead;
}

absl::StatusOr<LookAhead> LookAhead::Create(const Queue& main, const DeviceLimits& limits) {
  CROUT_ASSIGN_OR_RETURN(LookAhead ahead, CreateBorrower(main.stream, limits));
  ahead.main_ = main;
  CROUT_ASSIGN_OR_RETURN(ahead.cublas_, MakeCublasHandle(ahead.urgent_.stream));
  ahead.urgent_.cublas = ahead.cublas_.get();
  if (ahead.confined_) {
    CROUT_ASSIGN_OR_RETURN(ahead.confined_cublas_, MakeCublasHandle(ahead.confined_queue_.stream));
    ahead.confined_queue_.cublas = ahead.confined_cublas_.get();
    ahead.confined_queue_.workspace = main.workspace;
  }
  CROUT_RETURN_IF_ERROR(ahead.trailing().Bind());
  return ahead;
}

void LookAhead::Borrow(const LookAhead& lender, std::span<std::byte> workspace) {
  main_.cublas = lender.main_.cublas;
  main_.workspace = workspace;
  urgent_.cublas = lender.urgent_.cublas;
  confined_queue_.cublas = lender.trailing().cublas;
  confined_queue_.workspace = workspace;
}

absl::Status LookAhead::Bind(std::span<std::byte> urgent_workspace) const {
  Queue with_workspace = urgent_;
  with_workspace.workspace = urgent_workspace;
  CROUT_RETURN_IF_ERROR(with_workspace.Bind());
  return trailing().Bind();
}

absl::Status LookAhead::Fork() {
  CROUT_RETURN_IF_ERROR(Record(main_event_, main_));
  return Await(main_event_, {urgent(), trailing()});
}

absl::Status LookAhead::Join() {
  CROUT_RETURN_IF_ERROR(Record(urgent_event_, urgent()));
  CROUT_RETURN_IF_ERROR(Record(trailing_event_, trailing()));
  CROUT_RETURN_IF_ERROR(Await(urgent_event_, {main_}));
  return Await(trailing_event_, {main_});
}

absl::Status LookAhead::SyncQueues() {
  // Record both events before either queue waits. Otherwise the second event would follow the first
  // queue's wait, and the other queue would wait for that too, which takes time.
  CROUT_RETURN_IF_ERROR(Record(urgent_event_, urgent()));
  CROUT_RETURN_IF_ERROR(Record(trailing_event_, trailing()));
  CROUT_RETURN_IF_ERROR(Await(urgent_event_, {trailing()}));
  return Await(trailing_event_, {urgent()});
}

absl::Status LookAhead::UrgentAwaitsTrailing() {
  CROUT_RETURN_IF_ERROR(Record(trailing_event_, trailing()));
  return Await(trailing_event_, {urgent()});
}

absl::Status LookAhead::TrailingAwaitsUrgent() {
  CROUT_RETURN_IF_ERROR(Record(urgent_event_, urgent()));
  return Await(urgent_event_, {trailing()});
}

}  // namespace crout::cuda
