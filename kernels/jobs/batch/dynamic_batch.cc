// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/batch/dynamic_batch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/assess_solution.h"
#include "kernels/jobs/batch/dynamic_batch_layout.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/numerics/equilibrate.h"
#include "kernels/numerics/matrix_scan.h"
#include "kernels/stop_requested.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"

namespace crout {
namespace {

// Solver name in the summary: LAPACK's on the host, and the equivalent on a GPU.
constexpr char kSolver[] = "getrs";

// Converts a packed row-major matrix to column-major, or the reverse if `to_columns` is false.
template <class T>
void Reorder(const T* from, int64_t rows, int64_t cols, bool to_columns, T* to) {
  for (int64_t j = 0; j < cols; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      if (to_columns) {
        to[i + j * rows] = from[i * cols + j];
      } else {
        to[i * cols + j] = from[i + j * rows];
      }
    }
  }
}

void CopyPacked(const PackedMatrix& shape, const std::byte* from, bool to_columns, std::byte* to) {
  if (shape.layout == Layout::kColumnMajor || shape.cols == 1 || shape.rows == 1) {
    std::memcpy(to, from, shape.bytes());
    return;
  }
  DispatchDType(shape.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Reorder(reinterpret_cast<const T*>(from), shape.rows, shape.cols, to_columns,
            reinterpret_cast<T*>(to));
  });
}

// One batch. Owns the buffers that enqueued work uses.
class DynamicBatchJob {
 public:
  // The first `factored` elements of `systems` are the systems to factor.
  DynamicBatchJob(ExecutionContext& context, const BatchLu& method, Op op,
                  std::vector<DynamicBatchSystem*> systems, size_t factored, MemoryResource& host)
      : context_(context),
        method_(method),
        op_(op),
        systems_(std::move(systems)),
        factored_(factored),
        dtype_(systems_.front()->shape.dtype),
        host_memory_(host),
        places_(systems_.size(), MatrixBytes(), RhsBytes()) {}

  absl::Status Run(StopRequested stop, DynamicBatchTimings& timings);

 private:
  size_t MatrixBytes() const {
    size_t bytes = 0;
    for (size_t k = 0; k < factored_; ++k)
      bytes += AlignedToMember(MatrixBytesOf(systems_[k]->shape));
    return bytes;
  }
  size_t RhsBytes() const {
    size_t bytes = 0;
    for (const DynamicBatchSystem* system : systems_)
      bytes += AlignedToMember(RhsBytesOf(system->shape));
    return bytes;
  }
  absl::Status Allocate();
  absl::StatusOr<Buffer> HostBlock(size_t bytes);
  void Pack();
  void PlaceMembers(size_t k, int64_t matrix, int64_t rhs, int64_t pivots);
  absl::Status Upload();
  absl::Status Factor(StopRequested stop);
  absl::Status Solve(StopRequested stop);
  absl::Status KeepParts();
  absl::Status Download();
  void ReportFactor(size_t k);
  void ReportSolution(size_t k);

  BatchMember* Table(DynamicBatchLayout::Table table, std::byte* block) const {
    return reinterpret_cast<BatchMember*>(block) + table * systems_.size();
  }
  std::span<const BatchMember> OnHost(DynamicBatchLayout::Table table, size_t count) const {
    return {Table(table, up_.data()), count};
  }
  // Returns the first `count` members of a table as a device batch, relative to `data`.
  IrregularBatch Batch(DynamicBatchLayout::Table table, std::byte* data, size_t count) const {
    return {data, ExtentOf(dtype_, OnHost(table, count)), Table(table, block_.data())};
  }
  std::byte* Back(size_t place) const { return back_.data() + (place - places_.figures); }
  BatchFactors Factors() const {
    const BatchFigures figures(Back(places_.figures), std::ssize(systems_));
    return {ipiv_.as<int64_t>(), figures.info, figures.pivot_growth, figures.quality,
            figures.pivot_condition};
  }
  BatchLu::Workspace Workspace() const {
    return {{workspace_.data(), workspace_.size()},
            {host_workspace_.data(), host_workspace_.size()}};
  }
  // Returns the signed distance between two device addresses, in units of `unit` bytes.
  int64_t Distance(const void* from, const void* to, size_t unit) const {
    return (reinterpret_cast<intptr_t>(to) - reinterpret_cast<intptr_t>(from)) /
           static_cast<int64_t>(unit);
  }

  ExecutionContext& context_;
  const BatchLu& method_;
  const Op op_;
  const std::vector<DynamicBatchSystem*> systems_;
  const size_t factored_;
  const DType dtype_;
  MemoryResource& host_memory_;
  const DynamicBatchLayout places_;
  Buffer up_;    // host: data for the device
  Buffer down_;  // host: data from the device
  Buffer host_workspace_;
  Buffer block_;  // device: copy of up_
  Buffer lu_;
  Buffer back_;  // device: source of down_
  Buffer ipiv_;
  Buffer workspace_;
};

// Prefers staging memory: from other memory, a copy to the device may wait for enqueued work.
absl::StatusOr<Buffer> DynamicBatchJob::HostBlock(size_t bytes) {
  absl::StatusOr<Buffer> staged = context_.device().staging_memory().Allocate(bytes);
  return staged.ok() ? std::move(staged) : host_memory_.Allocate(bytes);
}

absl::Status DynamicBatchJob::Allocate() {
  CROUT_ASSIGN_OR_RETURN(up_, HostBlock(places_.end));
  CROUT_ASSIGN_OR_RETURN(down_, HostBlock(places_.back()));
  MemoryResource& memory = context_.device().memory();
  int64_t pivots = 0;
  for (size_t k = 0; k < factored_; ++k) pivots += systems_[k]->shape.n;
  CROUT_ASSIGN_OR_RETURN(block_, memory.Allocate(places_.end));
  CROUT_ASSIGN_OR_RETURN(lu_, memory.Allocate(NonEmpty(places_.figures - places_.matrices)));
  CROUT_ASSIGN_OR_RETURN(back_, memory.Allocate(places_.back()));
  CROUT_ASSIGN_OR_RETURN(ipiv_,
                         memory.Allocate(NonEmpty(static_cast<size_t>(pivots) * sizeof(int64_t))));
  for (DynamicBatchSystem* system : systems_) {
    if (!system->shape.keeps_factor) continue;
    FactorParts& parts = system->made.parts;
    const auto add = [&](std::string_view name, PartKind kind, size_t bytes) -> absl::Status {
      CROUT_ASSIGN_OR_RETURN(Buffer buffer, memory.Allocate(bytes));
      parts.Add(name, kind, std::move(buffer));
      return absl::OkStatus();
    };
    const size_t bytes = MatrixBytesOf(system->shape);
    CROUT_RETURN_IF_ERROR(add(kLuPart, PartKind::kFactor, bytes));
    CROUT_RETURN_IF_ERROR(
        add(kIpivPart, PartKind::kFactor, static_cast<size_t>(system->shape.n) * sizeof(int64_t)));
    if (!system->shape.keeps_matrix) continue;
    CROUT_RETURN_IF_ERROR(add(kMatrixPart, PartKind::kOperand, bytes));
  }
  return absl::OkStatus();
}

// `matrix` and `rhs` are byte offsets from the first matrix and right-hand side; `pivots` is an
// offset in elements.
void DynamicBatchJob::PlaceMembers(size_t k, int64_t matrix, int64_t rhs, int64_t pivots) {
  const DynamicBatchSystem& system = *systems_[k];
  const auto size = static_cast<int64_t>(SizeOf(dtype_));
  BatchMember lu = SquareMember(system.shape.n);
  BatchMember a = lu;
  lu.offset = a.offset = matrix / size;
  lu.first_diagonal = pivots;
  if (system.factor != nullptr) {
    // A member may be located anywhere, so existing factors are used in place, without a copy.
    const Factorization& factor = *system.factor;
    lu.offset = Distance(lu_.data(), factor.lu().data(), SizeOf(dtype_));
    lu.first_diagonal = Distance(ipiv_.data(), factor.ipiv().data(), sizeof(int64_t));
    a.offset = Distance(block_.data() + places_.matrices, factor.matrix().data(), SizeOf(dtype_));
  }
  BatchMember b = SquareMember(system.shape.n);
  b.cols = static_cast<int32_t>(system.shape.nrhs);
  b.offset = rhs / size;
  const BatchMember none;  // has no columns
  Table(DynamicBatchLayout::kLu, up_.data())[k] = lu;
  Table(DynamicBatchLayout::kMatrix, up_.data())[k] = a;
  Table(DynamicBatchLayout::kRhs, up_.data())[k] = system.shape.nrhs > 0 ? b : none;
  Table(DynamicBatchLayout::kVerified, up_.data())[k] =
      system.shape.nrhs > 0 && system.verify ? b : none;
}

void DynamicBatchJob::Pack() {
  std::byte* const up = up_.data();
  std::memset(up + places_.figures, 0, places_.rhs - places_.figures);
  int64_t matrix = 0;
  int64_t rhs = 0;
  int64_t pivots = 0;
  for (size_t k = 0; k < systems_.size(); ++k) {
    const DynamicBatchSystem& system = *systems_[k];
    PlaceMembers(k, matrix, rhs, pivots);
    if (k < factored_) {
      CopyPacked(system.matrix, system.matrix.data, true, up + places_.matrices + matrix);
      matrix += static_cast<int64_t>(AlignedToMember(MatrixBytesOf(system.shape)));
      pivots += system.shape.n;
    }
    if (system.shape.nrhs == 0) continue;
    CopyPacked(system.rhs, system.rhs.data, true, up + places_.rhs + rhs);
    rhs += static_cast<int64_t>(AlignedToMember(RhsBytesOf(system.shape)));
  }
}

absl::Status DynamicBatchJob::Upload() {
  MatrixOps& ops = context_.ops();
  CROUT_RETURN_IF_ERROR(ops.CopyToDevice(up_.data(), block_.data(), places_.end));
  CROUT_RETURN_IF_ERROR(
      ops.CopyOnDevice(block_.data() + places_.figures, back_.data(), places_.back()));
  if (factored_ == 0) return absl::OkStatus();
  return ops.CopyOnDevice(block_.data() + places_.matrices, lu_.data(),
                          places_.figures - places_.matrices);
}

absl::Status DynamicBatchJob::Factor(StopRequested stop) {
  if (factored_ == 0) return absl::OkStatus();
  // Each figure is an array over all systems, so the factored ones are its first elements.
  return method_.Factor(context_, Batch(DynamicBatchLayout::kLu, lu_.data(), factored_),
                        OnHost(DynamicBatchLayout::kLu, factored_), Factors(), Workspace(), stop);
}

absl::Status DynamicBatchJob::Solve(StopRequested stop) {
  const size_t count = systems_.size();
  const bool solves = std::any_of(systems_.begin(), systems_.end(),
                                  [](const auto* system) { return system->shape.nrhs > 0; });
  if (!solves) return absl::OkStatus();
  const BatchLu::Workspace workspace = Workspace();
  CROUT_RETURN_IF_ERROR(
      method_.Solve(context_, op_, Batch(DynamicBatchLayout::kLu, lu_.data(), count),
                    OnHost(DynamicBatchLayout::kLu, count), Factors(),
                    Batch(DynamicBatchLayout::kRhs, Back(places_.rhs), count), workspace, stop));
  if (ExtentOf(dtype_, OnHost(DynamicBatchLayout::kVerified, count)).total_cols == 0)
    return absl::OkStatus();
  return method_.BackwardErrors(
      context_, op_, Batch(DynamicBatchLayout::kMatrix, block_.data() + places_.matrices, count),
      Batch(DynamicBatchLayout::kVerified, Back(places_.rhs), count),
      Batch(DynamicBatchLayout::kVerified, block_.data() + places_.rhs, count),
      reinterpret_cast<double*>(Back(places_.errors)), workspace);
}

absl::Status DynamicBatchJob::KeepParts() {
  MatrixOps& ops = context_.ops();
  for (size_t k = 0; k < factored_; ++k) {
    DynamicBatchSystem& system = *systems_[k];
    if (!system.shape.keeps_factor) continue;
    const BatchMember& lu = OnHost(DynamicBatchLayout::kLu, factored_)[k];
    const size_t offset = static_cast<size_t>(lu.offset) * SizeOf(dtype_);
    for (const FactorPart& part : system.made.parts) {
      const std::byte* from = lu_.data() + offset;
      if (part.name == kMatrixPart) from = block_.data() + places_.matrices + offset;
      if (part.name == kIpivPart) {
        from = reinterpret_cast<const std::byte*>(ipiv_.as<int64_t>() + lu.first_diagonal);
      }
      CROUT_RETURN_IF_ERROR(ops.CopyOnDevice(from, part.buffer.data(), part.buffer.size()));
    }
  }
  return absl::OkStatus();
}

absl::Status DynamicBatchJob::Download() {
  CROUT_RETURN_IF_ERROR(context_.ops().CopyToHost(back_.data(), down_.data(), places_.back()));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  for (size_t k = 0; k < systems_.size(); ++k) {
    if (k < factored_) ReportFactor(k);
    if (systems_[k]->shape.nrhs > 0) ReportSolution(k);
  }
  return absl::OkStatus();
}

void DynamicBatchJob::ReportFactor(size_t k) {
  const BatchFigures figures(down_.data(), std::ssize(systems_));
  FactorSummary& summary = systems_[k]->made.summary;
  const MethodTraits& traits = method_.traits();
  summary.algorithm = std::string(traits.name);
  summary.n = systems_[k]->shape.n;
  summary.factor_dtype = summary.matrix_dtype = dtype_;
  summary.unit_diagonal = traits.unit_diagonal;
  summary.info = figures.info[k];
  summary.pivots = traits.pivoting != PivotRule::kNone;
  if (summary.info > 0) summary.singular = SingularReason::kZeroPivot;
  summary.pivot_growth = figures.pivot_growth[k];
  if (summary.info > 0) return;
  summary.quality = figures.quality[k];
  summary.condition_signal = figures.pivot_condition[k];
}

void DynamicBatchJob::ReportSolution(size_t k) {
  DynamicBatchSystem& system = *systems_[k];
  if (k < factored_ && system.made.summary.info > 0) return;
  const BatchMember& place = OnHost(DynamicBatchLayout::kRhs, systems_.size())[k];
  const std::byte* const back = down_.data() - places_.figures;
  const std::byte* const x =
      back + places_.rhs + static_cast<size_t>(place.offset) * SizeOf(dtype_);
  CopyPacked(system.rhs, x, /*to_columns=*/false, system.x);
  system.solved.solver = kSolver;
  const FactorSummary& factor =
      system.factor != nullptr ? system.factor->summary : system.made.summary;
  SolveFigures figures;
  figures.accepted = AcceptedBackwardError(dtype_, system.shape.n);
  figures.matrix_norm = op_ == Op::kNone ? factor.norm_inf : factor.norm_one;
  figures.rhs_max_abs = LargestOnHost(system.rhs);
  if (system.verify) {
    figures.backward_error = system.solved.backward_error =
        reinterpret_cast<const double*>(back + places_.errors)[k];
  }
  PackedMatrix delivered = system.rhs;
  delivered.data = system.x;
  system.solved.accuracy_warnings = AssessSolution(&factor, figures, delivered);
}

absl::Status DynamicBatchJob::Run(StopRequested stop, DynamicBatchTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  context_.report().ReportColumns(0);  // resets the previous job's count
  CROUT_RETURN_IF_ERROR(Failpoint("dynamic_batch.run"));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(Allocate());
  Pack();
  CROUT_ASSIGN_OR_RETURN(
      const BatchLu::WorkspaceBytes workspace,
      WorkspaceOf(method_, ExtentOf(dtype_, OnHost(DynamicBatchLayout::kLu, systems_.size()))));
  CROUT_ASSIGN_OR_RETURN(workspace_, context_.device().memory().Allocate(workspace.device));
  CROUT_ASSIGN_OR_RETURN(host_workspace_, HostBlock(workspace.host));
  CROUT_RETURN_IF_ERROR(Upload());
  timings.host_to_device += watch.Lap();
  CROUT_RETURN_IF_ERROR(Factor(stop));
  if (factored_ > 0) CROUT_RETURN_IF_ERROR(context_.SynchronizeOrStop(stop));
  timings.factor += watch.Lap();
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(Solve(stop));
  CROUT_RETURN_IF_ERROR(KeepParts());
  CROUT_RETURN_IF_ERROR(context_.SynchronizeOrStop(stop));
  timings.solve += watch.Lap();
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(Download());
  timings.device_to_host += watch.Lap();
  sync.Dismiss();
  return absl::OkStatus();
}

// Checks the numbers of a system. Returns true if it can be processed.
bool Inspect(DynamicBatchSystem& system) {
  if (system.factor == nullptr) {
    const MatrixScan scan = ScanMatrix(system.matrix);
    system.status = CheckFinite(scan.stats, system.matrix, "matrix");
    if (!system.status.ok()) return false;
    if (system.may_require_scaling) {
      system.needs_scaling =
          DecideScaling(EquilibrateMode::kAuto, scan.scale, system.shape.dtype).any();
    }
    if (system.needs_scaling) return false;
    system.made.summary.norm_one = scan.stats.norm_one;
    system.made.summary.norm_inf = scan.stats.norm_inf;
  }
  if (system.shape.nrhs == 0) return true;
  MatrixStats stats;
  stats.first_non_finite = FirstNonFinite(system.rhs);
  system.status = CheckFinite(stats, system.rhs, "right-hand side");
  return system.status.ok();
}

void RunBatch(ExecutionContext& context, const BatchLu& method, Op op,
              std::span<DynamicBatchSystem* const> systems, size_t factored, MemoryResource& host,
              StopRequested stop, DynamicBatchTimings& timings) {
  DynamicBatchJob job(context, method, op, {systems.begin(), systems.end()}, factored, host);
  const absl::Status status = job.Run(stop, timings);
  if (status.ok()) return;
  for (DynamicBatchSystem* system : systems) {
    system->status = status;
    system->made = {};
  }
}

bool Fits(const BatchLu& method, std::span<DynamicBatchSystem* const> systems) {
  std::vector<DynamicBatchShape> shapes;
  size_t reserved = 0;
  for (const DynamicBatchSystem* system : systems) {
    shapes.push_back(system->shape);
    reserved += system->device_bytes;
  }
  const absl::StatusOr<size_t> bytes = DynamicBatchDeviceBytes(method, shapes);
  return bytes.ok() && *bytes <= reserved;
}

void RunInParts(ExecutionContext& context, const BatchLu& method, Op op,
                std::span<DynamicBatchSystem* const> systems, MemoryResource& host,
                StopRequested stop, DynamicBatchTimings& timings) {
  if (systems.empty()) return;
  const auto first_given = std::partition_point(
      systems.begin(), systems.end(), [](const auto* system) { return system->shape.factors; });
  const size_t half = systems.size() / 2;
  if (half == 0 || Fits(method, systems)) {
    return RunBatch(context, method, op, systems,
                    static_cast<size_t>(first_given - systems.begin()), host, stop, timings);
  }
  RunInParts(context, method, op, systems.first(half), host, stop, timings);
  RunInParts(context, method, op, systems.subspan(half), host, stop, timings);
}

}  // namespace

void RunDynamicBatch(ExecutionContext& context, const BatchLu& method, Op op,
                     std::span<DynamicBatchSystem* const> systems, MemoryResource& host,
                     StopRequested stop, DynamicBatchTimings& timings) {
  std::vector<DynamicBatchSystem*> ready;
  ready.reserve(systems.size());
  for (DynamicBatchSystem* system : systems) {
    if (Inspect(*system)) ready.push_back(system);
  }
  std::stable_partition(ready.begin(), ready.end(),
                        [](const auto* system) { return system->shape.factors; });
  RunInParts(context, method, op, ready, host, stop, timings);
}

}  // namespace crout
