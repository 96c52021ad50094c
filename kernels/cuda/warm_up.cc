#include "kernels/cuda/warm_up.h"

#include <algorithm>

#include "kernels/cuda/cuda_status.h"
#include "kernels/sync_on_exit.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr int64_t kN = 256;

struct WarmUpBuffers {
  Buffer matrix;
  Buffer ipiv;
  Buffer rhs;
  Buffer workspace;
};

absl::StatusOr<WarmUpBuffers> Allocate(CudaContext& context, DType dtype) {
  Device& device = context.device();
  size_t workspace = 0;
  for (const auto& algorithm : device.algorithms()) {
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, algorithm->WorkspaceBytes(dtype, kN));
    workspace = std::max(workspace, bytes);
  }
  for (const auto& solver : device.solvers()) {
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, solver->WorkspaceBytes(dtype, kN, 1));
    workspace = std::max(workspace, bytes);
  }
  WarmUpBuffers buffers;
  CROUT_ASSIGN_OR_RETURN(buffers.matrix, device.memory().Allocate(kN * kN * SizeOf(dtype)));
  CROUT_ASSIGN_OR_RETURN(buffers.ipiv, device.memory().Allocate(kN * sizeof(int64_t)));
  CROUT_ASSIGN_OR_RETURN(buffers.rhs, device.memory().Allocate(kN * sizeof(double)));
  CROUT_ASSIGN_OR_RETURN(buffers.workspace, device.memory().Allocate(workspace));
  return buffers;
}

// The zero matrix will do: nothing looks at the result.
absl::Status Run(CudaContext& context, const WarmUpBuffers& buffers, DType dtype) {
  const AnyMatrix a = {buffers.matrix.data(), dtype, kN, kN, kN};
  const AnyMatrix b = {buffers.rhs.data(), dtype, kN, 1, kN};
  const std::span<std::byte> workspace(buffers.workspace.data(), buffers.workspace.size());
  auto* ipiv = buffers.ipiv.as<int64_t>();
  const PackedMatrix packed = {a.data, dtype, Layout::kColumnMajor, kN, kN};
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(a.data, 0, buffers.matrix.size(), context.stream()));
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(b.data, 0, buffers.rhs.size(), context.stream()));
  CROUT_RETURN_IF_ERROR(context.ops().Import(packed, a));
  for (const auto& algorithm : context.device().algorithms()) {
    CROUT_RETURN_IF_ERROR(algorithm->Factor(context, a, ipiv, workspace));
    const UnitDiagonal unit = algorithm->traits().unit_diagonal;
    CROUT_RETURN_IF_ERROR(context.ops().InspectFactor(a, unit == UnitDiagonal::kU, ipiv));
    for (const auto& solver : context.device().solvers()) {
      if (!solver->Supports(unit)) continue;
      CROUT_RETURN_IF_ERROR(solver->Solve(context, {a, ipiv, unit}, Op::kNone, b, workspace));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WarmUp(CudaContext& context) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    CROUT_ASSIGN_OR_RETURN(const WarmUpBuffers buffers, Allocate(context, dtype));
    SyncOnExit sync(context);
    CROUT_RETURN_IF_ERROR(Run(context, buffers, dtype));
    CROUT_RETURN_IF_ERROR(context.Synchronize());
    sync.Dismiss();
  }
  return absl::OkStatus();
}

}  // namespace crout
