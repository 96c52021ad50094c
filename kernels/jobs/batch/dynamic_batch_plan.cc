// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <vector>

#include "kernels/jobs/batch/dynamic_batch.h"
#include "kernels/jobs/batch/dynamic_batch_layout.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/size_class.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

size_t KeptBytesOf(const DynamicBatchShape& shape) {
  if (!shape.factors || !shape.keeps_factor) return 0;
  const size_t matrix = BlockBytes(MatrixBytesOf(shape));
  const size_t ipiv = BlockBytes(static_cast<size_t>(shape.n) * sizeof(int64_t));
  return matrix + ipiv + (shape.keeps_matrix ? matrix : 0);
}

}  // namespace

BatchExtent ExtentOf(DType dtype, std::span<const BatchMember> members) {
  BatchExtent extent;
  extent.dtype = dtype;
  extent.members = std::ssize(members);
  for (const BatchMember& member : members) {
    extent.max_rows = std::max(extent.max_rows, member.rows);
    extent.max_cols = std::max(extent.max_cols, member.cols);
    extent.max_diagonal = std::max(extent.max_diagonal, member.diagonal());
    extent.total_rows += member.rows;
    extent.total_cols += member.cols;
    extent.diagonals += member.diagonal();
    extent.bytes += AlignedToMember(static_cast<size_t>(member.rows) *
                                    static_cast<size_t>(member.cols) * SizeOf(dtype));
  }
  return extent;
}

absl::StatusOr<BatchLu::WorkspaceBytes> WorkspaceOf(const BatchLu& method,
                                                    const BatchExtent& extent) {
  CROUT_ASSIGN_OR_RETURN(BatchLu::WorkspaceBytes most, method.FactorWorkspaceBytes(extent));
  CROUT_ASSIGN_OR_RETURN(const BatchLu::WorkspaceBytes solve, method.SolveWorkspaceBytes(extent));
  CROUT_ASSIGN_OR_RETURN(const BatchLu::WorkspaceBytes errors, method.ErrorWorkspaceBytes(extent));
  most.device = std::max({most.device, solve.device, errors.device});
  most.host = std::max({most.host, solve.host, errors.host});
  return most;
}

absl::StatusOr<size_t> DynamicBatchDeviceBytes(const BatchLu& method,
                                               std::span<const DynamicBatchShape> shapes) {
  std::vector<BatchMember> members;
  size_t matrices = 0;
  size_t rhs = 0;
  size_t pivots = 0;
  size_t kept = 0;
  for (const DynamicBatchShape& shape : shapes) {
    CROUT_RETURN_IF_ERROR(
        MatrixBytes(shape.n, std::max(shape.n, shape.nrhs), shape.dtype).status());
    members.push_back(SquareMember(shape.n));
    rhs += AlignedToMember(RhsBytesOf(shape));
    if (!shape.factors) continue;
    matrices += AlignedToMember(MatrixBytesOf(shape));
    pivots += static_cast<size_t>(shape.n) * sizeof(int64_t);
    kept += KeptBytesOf(shape);
  }
  const DynamicBatchLayout places(shapes.size(), matrices, rhs);
  CROUT_ASSIGN_OR_RETURN(const BatchLu::WorkspaceBytes workspace,
                         WorkspaceOf(method, ExtentOf(shapes.front().dtype, members)));
  return ByteSum()
      .AddBuffer(places.end)
      .AddBuffer(NonEmpty(matrices))
      .AddBuffer(places.back())
      .AddBuffer(NonEmpty(pivots))
      .AddBuffer(workspace.device)
      .Add(kept)
      .total();
}

absl::StatusOr<DynamicBatchBytes> PlanDynamicBatch(const BatchLu& method,
                                                   const DynamicBatchShape& shape) {
  CROUT_ASSIGN_OR_RETURN(const size_t device, DynamicBatchDeviceBytes(method, {&shape, 1}));
  const DynamicBatchLayout places(1, shape.factors ? AlignedToMember(MatrixBytesOf(shape)) : 0,
                                  AlignedToMember(RhsBytesOf(shape)));
  const BatchMember member = SquareMember(shape.n);
  CROUT_ASSIGN_OR_RETURN(const BatchLu::WorkspaceBytes workspace,
                         WorkspaceOf(method, ExtentOf(shape.dtype, {&member, 1})));
  return DynamicBatchBytes{
      .device = device,
      .host = BlockBytes(places.end) + BlockBytes(places.back()) + BlockBytes(workspace.host),
      .kept = KeptBytesOf(shape)};
}

double PredictDynamicBatchSeconds(const BatchLu& method, const DynamicBatchShape& shape) {
  const BatchMember member = SquareMember(shape.n);
  return method.PredictFactorSeconds(ExtentOf(shape.dtype, {&member, 1}));
}

}  // namespace crout
