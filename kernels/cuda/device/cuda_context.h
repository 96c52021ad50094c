// SPDX-License-Identifier: Apache-2.0

// One stream of a GPU, with its vendor handles and workspaces.
#ifndef CROUT_KERNELS_CUDA_DEVICE_CUDA_CONTEXT_H_
#define CROUT_KERNELS_CUDA_DEVICE_CUDA_CONTEXT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/cuda/device/cuda_handles.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/look_ahead.h"
#include "kernels/cuda/ops/reduction_scratch.h"
#include "kernels/device.h"
#include "kernels/execution_context.h"
#include "kernels/krylov_ops.h"
#include "kernels/memory.h"
#include "kernels/sparse_ops.h"

namespace crout::cuda {

class Context final : public ExecutionContext {
 public:
  // Size of the context's own cuBLAS workspace, cuBLAS's own choice for Hopper. With one workspace
  // per stream, results do not depend on the work of other streams.
  static constexpr size_t kCublasWorkspaceBytes = size_t{32} << 20;

  static absl::StatusOr<std::unique_ptr<Context>> Create(Device& device, DeviceCore& core);
  ~Context() override;

  // Downcasts the interface. The caller handles contexts of its own device only.
  static Context& From(ExecutionContext& context) { return static_cast<Context&>(context); }

  Device& device() override { return device_; }
  MatrixOps& ops() override { return *ops_; }
  KrylovOps* krylov_ops() override { return krylov_ops_.get(); }
  SparseOps* sparse_ops() override { return sparse_ops_.get(); }
  DeviceReport& report() override { return *report_.as<DeviceReport>(); }
  absl::Status Synchronize() override;
  absl::Status SynchronizeOrStop(StopRequested stop) override;

  // Makes the GPU current, calls `enqueue` with the context's stream, and observes the returned
  // code. `call` names the failed function in the message.
  template <class F>
  absl::Status Enqueue(absl::string_view call, F&& enqueue) {
    CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
    return core_.Observe(CudaStatus(enqueue(stream()), call));
  }

  DeviceCore& core() { return core_; }
  cudaStream_t stream() { return stream_.get(); }
  cublasHandle_t cublas() { return cublas_.get(); }
  Queue queue() { return {stream(), cublas(), {cublas_workspace_.data(), kCublasWorkspaceBytes}}; }
  // The streams that methods with look-ahead use beside queue(). The urgent queue has no cuBLAS
  // workspace; Bind() supplies one.
  LookAhead& look_ahead() { return *look_ahead_; }
  // Rebinds the cuBLAS handles to these queues after they were lent.
  absl::Status BindQueues();
  cusolverDnHandle_t cusolver() { return cusolver_.get(); }
  cusolverDnParams_t getrf_params() { return getrf_params_.get(); }

  // In device memory: the accumulators of reductions, and the info of vendor routines.
  ReductionScratch* scratch() { return reinterpret_cast<ReductionScratch*>(device_words_.data()); }
  int* info() { return reinterpret_cast<int*>(device_words_.data() + sizeof(ReductionScratch)); }

  // Host memory for vendor routines, at least `bytes`; valid until a call with a larger size.
  absl::StatusOr<std::byte*> HostWorkspace(size_t bytes);

 private:
  Context(Device& device, DeviceCore& core) : device_(device), core_(core) {}
  absl::Status Initialize();

  Device& device_;
  DeviceCore& core_;
  // In the order of construction: handles use the stream until their destruction.
  Stream stream_;
  Buffer report_;        // pinned
  Buffer device_words_;  // ReductionScratch, int info
  Buffer cublas_workspace_;
  CublasHandle cublas_;
  std::optional<LookAhead> look_ahead_;
  CusolverHandle cusolver_;
  CusolverParams getrf_params_;
  std::vector<std::byte> host_workspace_;
  std::unique_ptr<MatrixOps> ops_;
  std::unique_ptr<KrylovOps> krylov_ops_;
  std::unique_ptr<SparseOps> sparse_ops_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CUDA_CONTEXT_H_
