// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/getrf/getrf.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/method_costs.h"
#include "kernels/cuda/getrf/nan_pivot.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

struct Workspace {
  size_t device_bytes = 0;
  size_t host_bytes = 0;
};

// The sizes depend on the shape alone, not on the matrix's address.
absl::StatusOr<Workspace> QueryWorkspace(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                         DType dtype, int64_t n) {
  const cudaDataType type = CudaTypeOf(dtype);
  Workspace workspace;
  CROUT_RETURN_IF_CUSOLVER_ERROR(
      cusolverDnXgetrf_bufferSize(handle, params, n, n, type, nullptr, std::max<int64_t>(1, n),
                                  type, &workspace.device_bytes, &workspace.host_bytes));
  return workspace;
}

absl::Status Enqueue(Context& context, const AnyMatrix& a, int64_t* ipiv,
                     std::span<std::byte> workspace) {
  CROUT_ASSIGN_OR_RETURN(
      const Workspace needed,
      QueryWorkspace(context.cusolver(), context.getrf_params(), a.dtype, a.rows));
  if (workspace.size() < needed.device_bytes) {
    return absl::InternalError(absl::StrCat("getrf needs ", needed.device_bytes,
                                            " bytes of workspace, got ", workspace.size()));
  }
  CROUT_ASSIGN_OR_RETURN(std::byte * host, context.HostWorkspace(needed.host_bytes));
  const cudaDataType type = CudaTypeOf(a.dtype);
  CROUT_RETURN_IF_CUSOLVER_ERROR(cusolverDnXgetrf(
      context.cusolver(), context.getrf_params(), a.rows, a.cols, type, a.data, a.ld, ipiv, type,
      workspace.data(), needed.device_bytes, host, needed.host_bytes, context.info()));
  CROUT_RETURN_IF_CUDA_ERROR(LaunchClearNanPivotInfo(a, context.info(), context.stream()));
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(&context.report().info, context.info(), sizeof(int),
                                             cudaMemcpyDeviceToHost, context.stream()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LuAlgorithm>> CudaGetrf::Create(DeviceCore& core) {
  auto algorithm = std::unique_ptr<CudaGetrf>(new CudaGetrf(core));
  MutexLock lock(&algorithm->mutex_);
  CROUT_ASSIGN_OR_RETURN(algorithm->handle_, MakeCusolverHandle(nullptr));
  CROUT_ASSIGN_OR_RETURN(algorithm->params_, MakeGetrfParams());
  return algorithm;
}

const MethodTraits& CudaGetrf::traits() const {
  static constexpr MethodTraits kTraits = {
      .name = "getrf",
      .description =
          "blocked Gaussian elimination with partial pivoting, cuSOLVER cusolverDnXgetrf",
      .types = kAllTypes,
      .unit_diagonal = UnitDiagonal::kL,
      .pivoting = PivotRule::kPartial,
      .is_timed = true};
  return kTraits;
}

absl::StatusOr<size_t> CudaGetrf::WorkspaceBytes(DType dtype, int64_t n,
                                                 const LuParameters&) const {
  if (n == 0) return 0;
  CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
  MutexLock lock(&mutex_);
  auto workspace = QueryWorkspace(handle_.get(), params_.get(), dtype, n);
  CROUT_RETURN_IF_ERROR(core_.Observe(workspace.status()));
  return workspace->device_bytes;
}

double CudaGetrf::PredictSeconds(DType dtype, int64_t n) const {
  return core_.Calibrated("getrf", dtype, n, PredictGetrfSeconds(dtype, n));
}

absl::Status CudaGetrf::Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                               std::span<std::byte> workspace, const LuParameters&,
                               StopRequested) const {
  Context& cuda = Context::From(context);
  if (a.rows == 0) {
    cuda.report().info = 0;
    return absl::OkStatus();
  }
  CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
  return core_.Observe(Enqueue(cuda, a, ipiv, workspace));
}

}  // namespace crout::cuda
