// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/batch/batch_solve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/assess_solution.h"
#include "kernels/jobs/batch/batch_factorize.h"
#include "kernels/jobs/batch/batch_payload.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/stop_requested.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"

namespace crout {
namespace {

// A received pair is stored as a MatrixShape: the member's index, then its number of columns.
int64_t MemberOf(const MatrixShape& pair) { return pair.rows; }

// One SolveBatch call. Owns the buffers that enqueued work uses.
class BatchSolveJob {
 public:
  BatchSolveJob(ExecutionContext& context, const BatchSolvePlan& plan, const Factorization& factor,
                Buffer&& upload)
      : context_(context),
        plan_(plan),
        factor_(ViewBatch(factor)),
        factor_block_(factor.lu().data()),
        factors_(factor.summary),
        host_workspace_(plan.host_workspace),
        buffers_(plan.buffers) {
    buffers_.Give(plan.upload, std::move(upload));
  }

  absl::StatusOr<BatchSolveSummary> Run(std::byte* solution, std::byte* figures, StopRequested stop,
                                        KernelTimings& timings);

 private:
  // Reads which members have right-hand sides and computes their layout.
  absl::Status ReadLayout();
  // Returns the sizes of the right-hand sides from the received pairs.
  absl::StatusOr<std::vector<MatrixShape>> ShapesOf(const std::vector<MatrixShape>& pairs);
  absl::Status Solve(StopRequested stop);
  absl::Status Download(std::byte* solution, std::byte* figures);
  // Selects the values of the systems, in their order, from an array with one value per member.
  template <class T>
  void PickSystems(const std::vector<T>& of_members, T* of_systems) const;
  BatchSolveSummary Summarize(const BatchSolveFigures& figures, const std::byte* solution) const;

  IrregularBatch In(BufferPlan::Id block) const {
    return {buffers_[block].data() + BatchValuesOffset(plan_.rhs.systems), extent_,
            buffers_[plan_.members].as<BatchMember>()};
  }

  ExecutionContext& context_;
  const BatchSolvePlan& plan_;
  const BatchView factor_;
  const std::byte* const factor_block_;
  const FactorSummary& factors_;
  BatchLayout factor_layout_;
  std::vector<std::byte> host_workspace_;  // written by the method and copied to the device
  std::vector<int64_t> systems_;           // the member of each system
  // Right-hand sides of all members; read by copies to the device.
  std::vector<BatchMember> members_;
  std::vector<double> errors_;  // one per member, like info_; written by copies from the device
  std::vector<int32_t> info_;
  BatchExtent extent_;
  JobBuffers buffers_;
};

absl::StatusOr<std::vector<MatrixShape>> BatchSolveJob::ShapesOf(
    const std::vector<MatrixShape>& pairs) {
  const int64_t count = plan_.factor.members;
  CROUT_ASSIGN_OR_RETURN(const std::vector<MatrixShape> orders,
                         ReadShapes(context_, factor_block_, count));
  CROUT_ASSIGN_OR_RETURN(factor_layout_, ComputeLayout(plan_.factor.dtype, orders));
  std::vector<MatrixShape> shapes;
  shapes.reserve(pairs.size());
  int64_t last = -1;
  for (const MatrixShape& pair : pairs) {
    const int64_t member = MemberOf(pair);
    if (member < 0 || member >= count) {
      return absl::InvalidArgumentError(absl::StrCat("right-hand sides for member ", member,
                                                     ": the batch has members 0 to ", count - 1));
    }
    if (member <= last) {
      return absl::InvalidArgumentError(
          absl::StrCat("right-hand sides for member ", member, " come after those for ", last,
                       ". Send them in ascending order of the member"));
    }
    const MatrixShape& a = orders[member];
    if (a.rows != a.cols) {
      return absl::InvalidArgumentError(absl::StrCat("member ", member, " is ", a.rows, " x ",
                                                     a.cols,
                                                     "; only square members can be solved with"));
    }
    shapes.push_back({a.rows, pair.cols});
    last = member;
  }
  return shapes;
}

absl::Status BatchSolveJob::ReadLayout() {
  CROUT_ASSIGN_OR_RETURN(const std::vector<MatrixShape> pairs,
                         ReadShapes(context_, buffers_[plan_.upload].data(), plan_.rhs.systems));
  CROUT_ASSIGN_OR_RETURN(const std::vector<MatrixShape> shapes, ShapesOf(pairs));
  CROUT_ASSIGN_OR_RETURN(const BatchLayout layout, ComputeLayout(plan_.factor.dtype, shapes));
  if (layout.extent.bytes != plan_.rhs.bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the right-hand sides of these systems have ", layout.extent.bytes,
                     " bytes; the header declares ", plan_.rhs.bytes));
  }
  extent_ = layout.extent;
  extent_.members = plan_.factor.members;
  members_.resize(plan_.factor.members);  // a member without columns is not solved
  systems_.reserve(pairs.size());
  for (size_t k = 0; k < pairs.size(); ++k) {
    systems_.push_back(MemberOf(pairs[k]));
    members_[systems_.back()] = layout.members[k];
  }
  return absl::OkStatus();
}

absl::Status BatchSolveJob::Solve(StopRequested stop) {
  MatrixOps& ops = context_.ops();
  const BatchLu& method = *plan_.options.method;
  const Buffer& upload = buffers_[plan_.upload];
  CROUT_RETURN_IF_ERROR(ops.CopyToDevice(members_.data(), buffers_[plan_.members].data(),
                                         members_.size() * sizeof(BatchMember)));
  if (plan_.solution != plan_.upload) {
    CROUT_RETURN_IF_ERROR(
        ops.CopyOnDevice(upload.data(), buffers_[plan_.solution].data(), upload.size()));
  }
  const BatchLu::Workspace workspace = {buffers_.Span(plan_.workspace), host_workspace_};
  CROUT_RETURN_IF_ERROR(method.Solve(context_, plan_.options.op, factor_.lu, factor_layout_.members,
                                     factor_.factors, In(plan_.solution), workspace, stop));
  if (plan_.options.verify) {
    CROUT_RETURN_IF_ERROR(method.BackwardErrors(context_, plan_.options.op, factor_.matrix,
                                                In(plan_.solution), In(plan_.upload),
                                                buffers_[plan_.errors].as<double>(), workspace));
  }
  CROUT_RETURN_IF_ERROR(context_.SynchronizeOrStop(stop));
  return CheckNotStopped(stop);
}

template <class T>
void BatchSolveJob::PickSystems(const std::vector<T>& of_members, T* of_systems) const {
  std::transform(systems_.begin(), systems_.end(), of_systems,
                 [&](int64_t member) { return of_members[member]; });
}

absl::Status BatchSolveJob::Download(std::byte* solution, std::byte* figures) {
  MatrixOps& ops = context_.ops();
  const size_t members = members_.size();
  errors_.assign(members, std::numeric_limits<double>::quiet_NaN());
  info_.resize(members);
  CROUT_RETURN_IF_ERROR(ops.CopyToHost(In(plan_.solution).data, solution, plan_.rhs.bytes));
  CROUT_RETURN_IF_ERROR(
      ops.CopyToHost(factor_.factors.info, info_.data(), members * sizeof(int32_t)));
  if (plan_.options.verify) {
    CROUT_RETURN_IF_ERROR(
        ops.CopyToHost(buffers_[plan_.errors].data(), errors_.data(), members * sizeof(double)));
  }
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const BatchSolveFigures reported(figures, plan_.rhs.systems);
  PickSystems(errors_, reported.backward_error);
  PickSystems(info_, reported.info);
  return absl::OkStatus();
}

BatchSolveSummary BatchSolveJob::Summarize(const BatchSolveFigures& figures,
                                           const std::byte* solution) const {
  BatchSolveSummary summary;
  double& worst = summary.backward_error;  // remains NaN once it is NaN
  const DType dtype = plan_.factor.dtype;
  for (int64_t k = 0; k < plan_.rhs.systems; ++k) {
    if (figures.info[k] > 0) {
      ++summary.singular;
      continue;
    }
    const BatchMember& x = members_[systems_[k]];
    const double error = figures.backward_error[k];
    bool accepted = true;
    if (plan_.options.verify) {
      if (!(error <= worst) && !std::isnan(worst)) worst = error;
      accepted = IsAccepted(error, AcceptedBackwardError(dtype, x.rows));
    } else {
      const std::byte* const values = solution + static_cast<size_t>(x.offset) * SizeOf(dtype);
      accepted =
          std::isfinite(LargestOnHost({values, dtype, Layout::kColumnMajor, x.rows, x.cols}));
    }
    if (!accepted && summary.inaccurate++ == 0) summary.first_inaccurate = k;
  }
  summary.accuracy_warnings.inaccurate = summary.inaccurate > 0;
  summary.accuracy_warnings.growth = !plan_.options.verify && factors_.is_poor();
  summary.accuracy_warnings.nearly_singular = factors_.is_nearly_singular();
  return summary;
}

absl::StatusOr<BatchSolveSummary> BatchSolveJob::Run(std::byte* solution, std::byte* figures,
                                                     StopRequested stop, KernelTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(ReadLayout());
  CROUT_RETURN_IF_ERROR(buffers_.Allocate(context_.device().memory()));
  CROUT_RETURN_IF_ERROR(Failpoint("solve.solve"));
  CROUT_RETURN_IF_ERROR(Solve(stop));
  timings.solve += watch.Lap();
  CROUT_RETURN_IF_ERROR(Download(solution, figures));
  timings.device_to_host += watch.Lap();
  sync.Dismiss();
  return Summarize(BatchSolveFigures(figures, plan_.rhs.systems), solution);
}

absl::Status AddBuffers(BatchSolvePlan& plan) {
  const BatchSolveOptions& options = plan.options;
  const int64_t members = plan.factor.members;
  BufferPlan& buffers = plan.buffers;
  CROUT_ASSIGN_OR_RETURN(
      const size_t upload,
      ByteSum().Add(BatchValuesOffset(plan.rhs.systems)).Add(plan.rhs.bytes).total());
  CROUT_ASSIGN_OR_RETURN(const size_t places, BatchMembersBytes(members));
  CROUT_ASSIGN_OR_RETURN(BatchLu::WorkspaceBytes workspace,
                         options.method->SolveWorkspaceBytes(plan.factor));
  if (options.verify) {
    CROUT_ASSIGN_OR_RETURN(const BatchLu::WorkspaceBytes of_errors,
                           options.method->ErrorWorkspaceBytes(plan.factor));
    workspace.device = std::max(workspace.device, of_errors.device);
    workspace.host = std::max(workspace.host, of_errors.host);
  }
  plan.upload = buffers.Add("upload", BufferKind::kUpload, upload);
  plan.solution = options.verify ? buffers.Add("solution", upload) : plan.upload;
  plan.members = buffers.Add("members", places);
  plan.errors = buffers.Add("backward errors",
                            options.verify ? static_cast<size_t>(members) * sizeof(double) : 0);
  plan.workspace = buffers.Add("workspace", workspace.device);
  plan.host_workspace = workspace.host;
  // Sizes and layout of all members and of the systems, and figures of all members.
  const size_t on_host = 2 * BatchLayoutBytes(members) + BatchLayoutBytes(plan.rhs.systems) +
                         workspace.host + BatchValuesOffset(plan.rhs.systems) +
                         static_cast<size_t>(plan.rhs.systems) * sizeof(int64_t) +
                         static_cast<size_t>(members) * BatchSolveFigures::kBytesPerSystem;
  buffers.Add("layout", BufferKind::kReport, on_host);
  plan.figures_bytes = BatchSolveFigures::kBytesPerSystem * static_cast<size_t>(plan.rhs.systems);
  buffers.Add("reply", BufferKind::kReply, plan.rhs.bytes);
  buffers.Add("figures", BufferKind::kReply, plan.figures_bytes);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BatchSolvePlan> PlanBatchSolve(const BatchSolveOptions& options,
                                              const FactorSummary& factor, bool has_matrix,
                                              const BatchRightHandSides& rhs) {
  if (options.method == nullptr) return absl::InvalidArgumentError("the options name no method");
  if (options.verify && !has_matrix && rhs.systems > 0) {
    return absl::FailedPreconditionError(
        "backward errors need the matrices of the batch, which were not kept. Factor with "
        "keep_matrix, or skip the verification");
  }
  const BatchExtent& extent = factor.batch->extent;
  if (rhs.systems < 0 || rhs.systems > extent.members) {
    return absl::InvalidArgumentError(absl::StrCat("there are right-hand sides for ", rhs.systems,
                                                   " members; the batch has ", extent.members));
  }
  BatchSolvePlan plan;
  plan.options = options;
  // For a real matrix both are equal; methods receive the usual one.
  if (!IsComplex(extent.dtype) && options.op == Op::kConjugateTranspose) {
    plan.options.op = Op::kTranspose;
  }
  plan.rhs = rhs;
  plan.factor = extent;
  CROUT_RETURN_IF_ERROR(AddBuffers(plan));
  CROUT_ASSIGN_OR_RETURN(plan.bytes, plan.buffers.Sum());
  // An upper estimate: most solves take less.
  plan.seconds = options.method->PredictFactorSeconds(extent);
  return plan;
}

absl::StatusOr<BatchSolveSummary> SolveBatch(ExecutionContext& context, const BatchSolvePlan& plan,
                                             const Factorization& factor, Buffer upload,
                                             std::byte* solution, std::byte* figures,
                                             StopRequested stop, KernelTimings& timings) {
  SyncOnExit sync(context);  // `upload` may still be arriving
  CROUT_RETURN_IF_ERROR(
      CheckUpload(upload.size(), plan.buffers.bytes(plan.upload), "right-hand sides"));
  if (plan.rhs.systems == 0) {
    if (plan.rhs.bytes == 0) return BatchSolveSummary();
    return absl::InvalidArgumentError("the header declares right-hand sides but no system");
  }
  BatchSolveJob job(context, plan, factor, std::move(upload));
  sync.Dismiss();  // Run synchronizes before the job's buffers are destroyed
  return job.Run(solution, figures, stop, timings);
}

}  // namespace crout
