// SPDX-License-Identifier: Apache-2.0

#include "server/groups/scalapack.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/host/device/cost_model.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"
#include "rank/layout.h"
#include "server/groups/group_method.h"

namespace crout {
namespace {

namespace v1 = rank::v1;

// Bytes per second of the copies between shared matrices and the blocks of the ranks.
constexpr double kCopyRate = 2e9;

v1::Op WireOp(Op op) {
  switch (op) {
    case Op::kNone:
      return v1::OP_NONE;
    case Op::kTranspose:
      return v1::OP_TRANSPOSE;
    case Op::kConjugateTranspose:
      return v1::OP_CONJUGATE_TRANSPOSE;
  }
  return v1::OP_UNSPECIFIED;
}

// Bytes of all ranks' blocks of a rows x cols matrix.
absl::StatusOr<size_t> GridBytes(int ranks, int64_t rows, int64_t cols, DType dtype) {
  CROUT_RETURN_IF_ERROR(MatrixBytes(rows, cols, dtype).status());  // no overflow below
  const rank::Grid grid(ranks);
  const int64_t elements = rank::MostLocal(rows, grid.rows) * rank::MostLocal(cols, grid.cols);
  if (elements > rank::kMostLocalElements || std::max(rows, cols) > INT32_MAX) {
    return absl::UnimplementedError(
        absl::StrCat("a ", rows, " x ", cols, " matrix gives each of ", ranks, " ranks ", elements,
                     " elements; scalapack takes up to ", rank::kMostLocalElements,
                     ". Use a group of more ranks"));
  }
  return static_cast<size_t>(rank::LocalBytes(grid, rows, cols, SizeOf(dtype))) * ranks;
}

double CopySeconds(DType dtype, double elements) {
  return elements * static_cast<double>(SizeOf(dtype)) / kCopyRate;
}

class ScalapackLu final : public LuAlgorithm, private GroupMethod {
 public:
  using GroupMethod::GroupMethod;

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {.name = "scalapack",
                                             .description = "ScaLAPACK pXgetrf on a group of ranks",
                                             .types = kAllTypes,
                                             .stoppable = true};
    return kTraits;
  }
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                        const LuParameters&) const override {
    return GridBytes(group_.ranks(), n, n, dtype);
  }
  double PredictSeconds(DType dtype, int64_t n) const override {
    const auto order = static_cast<double>(n);
    return Seconds(dtype, host::LuFlops(n)) + CopySeconds(dtype, 2 * order * order);
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters&,
                      StopRequested stop) const override {
    context.report().info = 0;
    if (a.rows == 0) return absl::OkStatus();
    v1::Job job;
    v1::Factor& factor = *job.mutable_factor();
    CROUT_RETURN_IF_ERROR(encoder_.Encode(a, factor.mutable_a()));
    CROUT_RETURN_IF_ERROR(encoder_.Encode(ipiv, a.rows * sizeof(int64_t), factor.mutable_ipiv()));
    CROUT_RETURN_IF_ERROR(
        encoder_.Encode(workspace.data(), workspace.size(), factor.mutable_workspace()));
    CROUT_ASSIGN_OR_RETURN(const v1::Result result,
                           group_.Run(std::move(job), PredictSeconds(a.dtype, a.rows), stop));
    context.report().info = static_cast<int32_t>(result.info());
    return absl::OkStatus();
  }
};

class ScalapackSolver final : public TriangularSolver, private GroupMethod {
 public:
  using GroupMethod::GroupMethod;

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {.name = "scalapack",
                                             .description = "ScaLAPACK pXgetrs on a group of ranks",
                                             .types = kAllTypes,
                                             .solves_with = {UnitDiagonal::kL}};
    return kTraits;
  }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override {
    const auto order = static_cast<double>(n);
    return Seconds(dtype, host::SolveFlops(n, nrhs)) +
           CopySeconds(dtype, order * order + 2 * order * static_cast<double>(nrhs));
  }
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const override {
    CROUT_ASSIGN_OR_RETURN(const size_t factor, GridBytes(group_.ranks(), n, n, dtype));
    CROUT_ASSIGN_OR_RETURN(const size_t columns, GridBytes(group_.ranks(), n, nrhs, dtype));
    return ByteSum().Add(factor).Add(columns).total();
  }

  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override {
    if (b.rows == 0 || b.cols == 0) return absl::OkStatus();
    v1::Job job;
    v1::Solve& solve = *job.mutable_solve();
    solve.set_op(WireOp(op));
    CROUT_RETURN_IF_ERROR(encoder_.Encode(factor.lu, solve.mutable_lu()));
    CROUT_RETURN_IF_ERROR(
        encoder_.Encode(factor.ipiv, b.rows * sizeof(int64_t), solve.mutable_ipiv()));
    CROUT_RETURN_IF_ERROR(encoder_.Encode(b, solve.mutable_b()));
    CROUT_RETURN_IF_ERROR(
        encoder_.Encode(workspace.data(), workspace.size(), solve.mutable_workspace()));
    return group_
        .Run(std::move(job), PredictSeconds(b.dtype, b.rows, b.cols),
             [&context] { return context.stop_requested(); })
        .status();
  }
};

}  // namespace

void AddScalapack(RankGroup& group, const SharedArena& arena, const GroupSpeed& speed,
                  Catalogue& catalogue) {
  catalogue.algorithms.push_back(std::make_unique<ScalapackLu>(group, arena, speed));
  catalogue.solvers.push_back(std::make_unique<ScalapackSolver>(group, arena, speed));
}

}  // namespace crout
