// SPDX-License-Identifier: Apache-2.0

#include "server/groups/cusolvermp.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/host/device/cost_model.h"
#include "kernels/host/methods.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"
#include "rank/layout.h"
#include "server/groups/group_method.h"

namespace crout {
namespace {

namespace v1 = rank::v1;

// Fits the times of float64 factorizations on four H100 with NVLink, from n = 16,384 to 131,072, to
// a tenth. The first is the latency of a column.
constexpr double kColumnSeconds = 1.75e-5;
constexpr double kGpuFlopsPerSecond = 2.5e13;
// Assumed bytes per second of copies to and from all GPUs, and of a GPU's memory.
constexpr double kGpuCopyRate = 2e10;
constexpr double kGpuMemoryRate = 2e12;
// Predicted for matrices that exceed the GPUs, so that `auto` chooses a method on the host. Finite,
// because the server adds and subtracts predictions.
constexpr double kExceedsGpusSeconds = 1e9;

// Base of both methods: their workspace and the speed of the GPUs.
class GpuMethod {
 public:
  GpuMethod(RankGroup& group, const SharedArena& arena) : group_(group), encoder_(arena) {}

 protected:
  // Workspace of a job with a matrix of order n. RESOURCE_EXHAUSTED if it exceeds the GPUs.
  absl::StatusOr<size_t> GridBytes(DType dtype, int64_t n) const {
    CROUT_RETURN_IF_ERROR(MatrixBytes(n, n, dtype).status());  // no overflow below
    const rank::GpuLayout layout(rank::Grid(group_.ranks()), n, SizeOf(dtype));
    const uint64_t free = group_.GpuBytes();
    if (static_cast<uint64_t>(layout.matrix_bytes) > free) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a matrix of order ", n, " needs ", layout.matrix_bytes,
                       " bytes on each of ", group_.ranks(), " GPUs; one has ", free,
                       " bytes free. Use a group of more GPUs, or algorithm=scalapack"));
    }
    return static_cast<size_t>(layout.WorkspaceBytes()) * group_.ranks();
  }
  // Returns true if the GPUs can hold a matrix of order n.
  bool Fits(DType dtype, int64_t n) const { return GridBytes(dtype, n).ok(); }
  double GpuSeconds(DType dtype, double flops) const {
    return flops / (kGpuFlopsPerSecond * host::RateFactor(dtype) * group_.ranks());
  }

  RankGroup& group_;
  const Encoder encoder_;
};

class CusolvermpLu final : public LuAlgorithm, private GpuMethod {
 public:
  using GpuMethod::GpuMethod;

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {.name = "cusolvermp",
                                             .description = "cuSOLVERMp getrf on a group of GPUs",
                                             .types = kAllTypes,
                                             .stoppable = true};
    return kTraits;
  }
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                        const LuParameters&) const override {
    return GridBytes(dtype, n);
  }
  double PredictSeconds(DType dtype, int64_t n) const override {
    return Fits(dtype, n) ? SecondsOnGpus(dtype, n) : kExceedsGpusSeconds;
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters&,
                      StopRequested stop) const override {
    context.report().info = 0;
    if (a.rows == 0) return absl::OkStatus();
    v1::Job job;
    v1::Factor& factor = *job.mutable_factor();
    factor.set_on_gpus(true);
    CROUT_RETURN_IF_ERROR(encoder_.Encode(a, factor.mutable_a()));
    CROUT_RETURN_IF_ERROR(encoder_.Encode(ipiv, a.rows * sizeof(int64_t), factor.mutable_ipiv()));
    CROUT_RETURN_IF_ERROR(
        encoder_.Encode(workspace.data(), workspace.size(), factor.mutable_workspace()));
    CROUT_ASSIGN_OR_RETURN(const v1::Result result,
                           group_.Run(std::move(job), SecondsOnGpus(a.dtype, a.rows), stop));
    context.report().info = static_cast<int32_t>(result.info());
    return absl::OkStatus();
  }

 private:
  double SecondsOnGpus(DType dtype, int64_t n) const {
    const auto order = static_cast<double>(n);
    const double bytes = 2 * order * order * static_cast<double>(SizeOf(dtype));
    return kMessageSeconds + kColumnSeconds * order + GpuSeconds(dtype, host::LuFlops(n)) +
           bytes / kGpuCopyRate;
  }
};

class CusolvermpSolver final : public TriangularSolver, private GpuMethod {
 public:
  CusolvermpSolver(RankGroup& group, const SharedArena& arena, GpuCopies& copies,
                   host::Executor& executor)
      : GpuMethod(group, arena), copies_(copies), on_host_(host::MakeGetrs(executor)) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = "cusolvermp",
        .description = "cuSOLVERMp getrs on a group of GPUs; transposed: LAPACK xGETRS",
        .types = kAllTypes,
        .solves_with = {UnitDiagonal::kL}};
    return kTraits;
  }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override {
    return Fits(dtype, n) ? SecondsOnGpus(dtype, n, nrhs) : kExceedsGpusSeconds;
  }
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const override {
    CROUT_ASSIGN_OR_RETURN(const size_t on_gpus, GridBytes(dtype, n));
    CROUT_ASSIGN_OR_RETURN(const size_t on_host, on_host_->WorkspaceBytes(dtype, n, nrhs));
    return std::max(on_gpus, on_host);
  }

  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double tolerance,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override {
    if (b.rows == 0 || b.cols == 0) return absl::OkStatus();
    if (op != Op::kNone) return on_host_->Solve(context, factor, op, tolerance, b, workspace);
    v1::Job job;
    v1::Solve& solve = *job.mutable_solve();
    solve.set_op(v1::OP_NONE);
    solve.set_on_gpus(true);
    solve.set_factor(copies_.NumberOf(factor.lu.data));
    CROUT_RETURN_IF_ERROR(encoder_.Encode(factor.lu, solve.mutable_lu()));
    CROUT_RETURN_IF_ERROR(
        encoder_.Encode(factor.ipiv, b.rows * sizeof(int64_t), solve.mutable_ipiv()));
    CROUT_RETURN_IF_ERROR(encoder_.Encode(b, solve.mutable_b()));
    CROUT_RETURN_IF_ERROR(
        encoder_.Encode(workspace.data(), workspace.size(), solve.mutable_workspace()));
    return group_
        .Run(std::move(job), SecondsOnGpus(b.dtype, b.rows, b.cols),
             [&context] { return context.stop_requested(); })
        .status();
  }

 private:
  // Each column is a separate call, which reads the factor.
  double SecondsOnGpus(DType dtype, int64_t n, int64_t nrhs) const {
    const auto order = static_cast<double>(n);
    const double bytes = order * order * static_cast<double>(SizeOf(dtype));
    return kMessageSeconds +
           static_cast<double>(nrhs) *
               (2 * kColumnSeconds * order + bytes / (kGpuMemoryRate * group_.ranks()));
  }

  GpuCopies& copies_;
  const std::unique_ptr<TriangularSolver> on_host_;
};

}  // namespace

void AddCusolvermp(RankGroup& group, const SharedArena& arena, GpuCopies& copies,
                   host::Executor& executor, Catalogue& catalogue) {
  catalogue.algorithms.push_back(std::make_unique<CusolvermpLu>(group, arena));
  catalogue.solvers.push_back(std::make_unique<CusolvermpSolver>(group, arena, copies, executor));
}

}  // namespace crout
