// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/multifrontal/multifrontal.h"

#include <algorithm>
#include <bit>
#include <complex>
#include <limits>
#include <span>
#include <utility>

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/multifrontal/assembly.h"
#include "kernels/cuda/multifrontal/factor_block.h"
#include "kernels/cuda/multifrontal/final_columns.h"
#include "kernels/cuda/multifrontal/front_lu.h"
#include "kernels/cuda/multifrontal/inspection.h"
#include "kernels/cuda/multifrontal/level_plan.h"
#include "kernels/cuda/multifrontal/numeric_workspace.h"
#include "kernels/cuda/multifrontal/small_front.h"
#include "kernels/cuda/multifrontal/traversal.h"
#include "kernels/execution_context.h"
#include "kernels/sparse/numeric_findings.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// Minimum number of operations that are enqueued before the host waits for earlier work.
constexpr double kFlopsAhead = 1e10;

template <class T>
class Numeric {
 public:
  Numeric(Context& context, const LuPanelKernels& kernels, const Analysis& analysis,
          const LevelPlan& levels, const Traversal& traversal, const AnySparse& a,
          std::byte* factor, std::byte* workspace, const StopRequested& stop)
      : context_(context),
        kernels_(kernels),
        analysis_(analysis),
        a_(a),
        levels_(levels),
        traversal_(traversal),
        depth_(static_cast<int32_t>(traversal.depth())),
        large_(levels_.FrontsWithColumns(analysis, kLargeForPermutations)),
        terminated_(levels_.batches.all()),
        block_(analysis, kDTypeOf<T>),
        factor_(factor),
        layout_(kernels, analysis, levels_, traversal, kDTypeOf<T>),
        workspace_(workspace),
        tree_(FrontTreeOf(analysis, block_, factor)),
        stop_(stop),
        columns_(analysis, traversal.order()) {
    terminated_.push_back({});
    memory_.factor = reinterpret_cast<T*>(factor);
    memory_.contributions = At<T>(layout_.contributions);
    memory_.members = {At<BatchMember>(layout_.f11), At<BatchMember>(layout_.f21),
                       At<BatchMember>(layout_.f12), At<BatchMember>(layout_.f22)};
    if (analysis.kept > 0) std::erase(large_, static_cast<int32_t>(analysis.fronts() - 1));
    memory_.analysis = &analysis_;
    memory_.fronts = traversal.order();
    memory_.order = depth_ == 0 ? Order(block_.order) : At<int32_t>(layout_.order);
    std::vector<TraversalStep> by_place = traversal.steps();
    std::ranges::sort(by_place, {}, &TraversalStep::begin);
    for (const TraversalStep& step : by_place) {
      step_start_.push_back(step.begin);
      shift_.push_back(step.shift);
    }
    memory_.ipiv = At<int64_t>(layout_.ipiv);
    memory_.info = At<int32_t>(layout_.info);
    memory_.least = {At<RealPart<T>>(layout_.least), At<uint8_t>(layout_.pivot_flags)};
    memory_.workspace = {workspace + layout_.front_lu, layout_.front_lu_bytes};
    memory_.cublas = {workspace + layout_.cublas, layout_.cublas_bytes};
  }

  // `last`: a factor of this analysis with the same depth, or null.
  absl::StatusOr<NumericFindings> Run(const std::byte* last, std::vector<int32_t>* postponable) {
    for (Event& event : marks_) {
      CROUT_ASSIGN_OR_RETURN(event, MakeEvent());
    }
    if (depth_ > 0) CROUT_RETURN_IF_ERROR(Send(memory_.fronts, workspace_ + layout_.order));
    CROUT_RETURN_IF_ERROR(last != nullptr ? Take(last) : Send());
    CROUT_RETURN_IF_ERROR(Send(large_, workspace_ + layout_.large));
    const cudaStream_t stream = context_.stream();
    CROUT_RETURN_IF_CUDA_ERROR(LaunchPlacePositions(tree_, analysis_.n, Order(block_.rows),
                                                    Order(block_.columns), Positions(), stream));
    CROUT_RETURN_IF_CUDA_ERROR(LaunchPlaceMembers(tree_, memory_.members, stream));
    CROUT_ASSIGN_OR_RETURN(NumericReport report, Factor(/*careful=*/false));
    if (report.too_small != 0) {
      CROUT_ASSIGN_OR_RETURN(report, Factor(/*careful=*/true));
    }
    if (postponable != nullptr) {
      postponable->clear();
      if (report.perturbed > 0 || report.unacceptable != 0) {
        CROUT_RETURN_IF_ERROR(FindPostponable(*postponable));
      }
    }
    NumericFindings found;
    if (report.least_inverse != 0) found.info = ~report.least_inverse;
    found.perturbed = report.perturbed;
    found.interchanges = report.interchanges;
    found.negative = report.negative;
    found.max_abs = std::bit_cast<double>(report.max_abs);
    found.largest = std::bit_cast<double>(report.largest);
    found.finite = report.not_finite == 0;
    symmetric_ = report.asymmetric == 0;
    return found;
  }

  bool symmetric() const { return symmetric_; }

 private:
  template <class U>
  U* At(size_t offset) const {
    return reinterpret_cast<U*>(workspace_ + offset);
  }
  NumericReport* report() const { return At<NumericReport>(layout_.report); }

  template <class Array>
  absl::Status Send(const Array& from, std::byte* to) {
    return context_.ops().CopyToDevice(from.data(), to, std::span(from).size_bytes());
  }

  // Sends the parts of the analysis that the device needs.
  absl::Status Send() {
    CROUT_RETURN_IF_ERROR(Send(levels_.order, factor_ + block_.order));
    CROUT_RETURN_IF_ERROR(Send(std::span(&depth_, 1), factor_ + block_.depth));
    CROUT_RETURN_IF_ERROR(SendFronts());
    CROUT_RETURN_IF_ERROR(Send(terminated_, factor_ + block_.batches));
    CROUT_RETURN_IF_ERROR(Send(analysis_.child, factor_ + block_.child));
    CROUT_RETURN_IF_ERROR(Send(analysis_.row_order, factor_ + block_.rows));
    CROUT_RETURN_IF_ERROR(Send(analysis_.column_order, factor_ + block_.columns));
    if (block_.scales != 0) {
      std::byte* const scales = factor_ + block_.scales;
      CROUT_RETURN_IF_ERROR(Send(analysis_.row_scale, scales));
      CROUT_RETURN_IF_ERROR(Send(analysis_.column_scale, scales + analysis_.n * sizeof(double)));
    }
    CROUT_RETURN_IF_ERROR(Send(analysis_.border, workspace_ + layout_.border));
    CROUT_RETURN_IF_CUDA_ERROR(
        LaunchPlaceBorders(tree_, At<int32_t>(layout_.border),
                           reinterpret_cast<int32_t*>(factor_ + block_.place), context_.stream()));
    return absl::OkStatus();
  }

  // Copies the same data from another factor on the device.
  absl::Status Take(const std::byte* last) {
    CROUT_RETURN_IF_ERROR(context_.ops().CopyOnDevice(last + block_.fronts, factor_ + block_.fronts,
                                                      block_.permutation - block_.fronts));
    CROUT_RETURN_IF_CUDA_ERROR(
        LaunchNumberBorders(tree_, At<int32_t>(layout_.border), context_.stream()));
    return absl::OkStatus();
  }

  absl::Status SendFronts() {
    const auto send = [this](const auto& from, size_t to) { return Send(from, workspace_ + to); };
    CROUT_RETURN_IF_ERROR(send(analysis_.factor_start, layout_.factor_start));
    CROUT_RETURN_IF_ERROR(send(analysis_.contribution_start, layout_.contribution_start));
    CROUT_RETURN_IF_ERROR(send(analysis_.border_start, layout_.border_start));
    CROUT_RETURN_IF_ERROR(send(shift_, layout_.shift));
    CROUT_RETURN_IF_ERROR(send(step_start_, layout_.step_start));
    CROUT_RETURN_IF_ERROR(send(analysis_.first_position, layout_.first_position));
    CROUT_RETURN_IF_ERROR(send(analysis_.parent, layout_.parent));
    CROUT_RETURN_IF_ERROR(send(analysis_.child_start, layout_.child_start));
    const FrontArrays arrays = {
        At<int64_t>(layout_.factor_start),   At<int64_t>(layout_.contribution_start),
        At<int64_t>(layout_.border_start),   At<int64_t>(layout_.shift),
        At<int32_t>(layout_.first_position), At<int32_t>(layout_.parent),
        At<int32_t>(layout_.child_start),    memory_.order,
        At<int32_t>(layout_.step_start),     static_cast<int>(analysis_.fronts()),
        static_cast<int>(step_start_.size())};
    CROUT_RETURN_IF_CUDA_ERROR(LaunchPackFronts(
        arrays, reinterpret_cast<Front*>(factor_ + block_.fronts), context_.stream()));
    return absl::OkStatus();
  }

  const int32_t* Order(size_t offset) const {
    return reinterpret_cast<const int32_t*>(factor_ + offset);
  }
  FrontPositions Positions() const {
    return {At<int32_t>(layout_.position_of_row), At<int32_t>(layout_.position_of_column),
            At<int32_t>(layout_.front_of)};
  }

  absl::StatusOr<NumericReport> Factor(bool careful) {
    CROUT_RETURN_IF_ERROR(Start());
    marked_[0] = marked_[1] = false;
    columns_.Restart();
    context_.report().ReportColumns(0);
    flops_ = 0;
    for (int64_t i = 0; i < traversal_.stages(); ++i) {
      const std::span<const TraversalStep> stage = traversal_.Stage(i);
      if (kHasSmallFronts<T> && stage.size() > 1) {
        CROUT_RETURN_IF_ERROR(FactorStage(stage, i));
        continue;
      }
      for (const TraversalStep& step : stage) CROUT_RETURN_IF_ERROR(FactorStep(step, careful));
    }
    return Inspect();
  }

  absl::Status FactorStep(const TraversalStep& step, bool careful) {
    CROUT_RETURN_IF_ERROR(Assemble(step));
    if (IsKept(step)) return absl::OkStatus();  // always the last step
    CROUT_RETURN_IF_ERROR(FactorSmall(step));
    for (const FrontBatch& batch : WithoutSmall(step)) {
      CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
      CROUT_RETURN_IF_ERROR(
          EnqueueFrontLu(context_, kernels_, memory_, step, batch, careful, stop_));
      columns_.Enqueue(batch);
      flops_ += FlopsOf(batch);
      if (flops_ < kFlopsAhead) continue;
      CROUT_RETURN_IF_ERROR(LimitWorkInFlight());
      flops_ = 0;
    }
    return absl::OkStatus();
  }

  static double FlopsOf(const FrontBatch& batch) {
    const double d1 = batch.d1;
    const double size = batch.size;
    return 2.0 * batch.count() * d1 * size * size;
  }

  // Waits for the work enqueued before the second-to-last call, then reports its columns. This
  // limits the work in flight, so that a stop takes effect and progress is reported.
  absl::Status LimitWorkInFlight() {
    const Event& event = marks_[next_mark_];
    if (marked_[next_mark_]) {
      CROUT_RETURN_IF_CUDA_ERROR(cudaEventSynchronize(event.get()));
      context_.report().ReportColumns(columns_at_[next_mark_]);
    }
    CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(event.get(), context_.stream()));
    columns_at_[next_mark_] = columns_.Enqueued();
    marked_[next_mark_] = true;
    next_mark_ = 1 - next_mark_;
    return absl::OkStatus();
  }

  absl::Status Start() {
    const cudaStream_t stream = context_.stream();
    CROUT_RETURN_IF_CUDA_ERROR(
        cudaMemsetAsync(workspace_ + layout_.report, 0, layout_.zero_bytes, stream));
    CROUT_RETURN_IF_CUDA_ERROR(
        cudaMemsetAsync(factor_, 0, analysis_.factor_entries() * sizeof(T), stream));
    const FrontScales scales = FrontScalesOf(analysis_, block_, factor_);
    CROUT_RETURN_IF_CUDA_ERROR(LaunchPutEntries(tree_, Positions(), At<int32_t>(layout_.border), a_,
                                                scales, memory_.factor, stream));
    const PivotBounds bounds = {PivotPerturbation(kDTypeOf<T>, !analysis_.delayed),
                                PivotPerturbation(kDTypeOf<T>, false)};
    KeptRows kept;
    if (analysis_.kept > 0) kept = {Positions().of_row, analysis_.n - analysis_.kept};
    CROUT_RETURN_IF_CUDA_ERROR(LaunchMinPivots<T>(tree_, a_, scales, Order(block_.columns), kept,
                                                  bounds, At<RealPart<T>>(layout_.least), report(),
                                                  stream));
    return absl::OkStatus();
  }

  // Returns true if the step contains the front of kept unknowns. That front is the only root; it
  // is assembled but not factored.
  bool IsKept(const TraversalStep& step) const { return step.level == 0 && analysis_.kept > 0; }

  // The step's batches, without the small fronts, which one kernel assembles and factors.
  std::span<const FrontBatch> WithoutSmall(const TraversalStep& step) const {
    const std::span<const FrontBatch> batches = traversal_.Batches(step);
    size_t count = batches.size();
    while (kHasSmallFronts<T> && !IsKept(step) && count > 0 &&
           IsSmallFront(batches[count - 1].size)) {
      --count;
    }
    return batches.first(count);
  }

  absl::Status FactorSmall(const TraversalStep& step) {
    SmallFronts fronts;
    if constexpr (kHasSmallFronts<T>) {
      AddTo(fronts, traversal_.Batches(step).subspan(WithoutSmall(step).size()), /*awaits=*/false);
    }
    return EnqueueSmall(fronts, {});
  }

  // Factors all steps of a stage of small fronts.
  absl::Status FactorStage(std::span<const TraversalStep> stage, int64_t index) {
    SmallFronts fronts;
    for (const TraversalStep& step : stage) {
      AddTo(fronts, traversal_.Batches(step), /*awaits=*/&step != stage.data());
    }
    auto* const arrivals = At<int32_t>(layout_.arrivals);
    return EnqueueSmall(fronts, {arrivals, arrivals + analysis_.fronts() + index});
  }

  void AddTo(SmallFronts& fronts, std::span<const FrontBatch> batches, bool awaits) {
    for (const FrontBatch& batch : batches) {
      fronts.Add(batch.begin, batch.end, batch.size, awaits);
      columns_.Enqueue(batch);
    }
  }

  absl::Status EnqueueSmall(const SmallFronts& fronts, const FrontArrivals& arrivals) {
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
    if constexpr (kHasSmallFronts<T>) {
      CROUT_RETURN_IF_CUDA_ERROR(LaunchSmallFronts(tree_, memory_.order, fronts, memory_.factor,
                                                   memory_.contributions, memory_.ipiv,
                                                   memory_.least, arrivals, context_.stream()));
    }
    return absl::OkStatus();
  }

  // Adds the children's contributions to the step's fronts.
  absl::Status Assemble(const TraversalStep& step) {
    if (WithoutSmall(step).empty()) return absl::OkStatus();
    CROUT_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(memory_.contributions + step.base, 0,
                                               step.entries * sizeof(T), context_.stream()));
    absl::Status status;
    ForSets(WithoutSmall(step), memory_.order, kColumnsOfExtendAdd, [&](const FrontSet& set) {
      if (!status.ok() || set.children == 0) return;
      status = CudaStatus(
          LaunchExtendAdd(tree_, set, memory_.factor, memory_.contributions, context_.stream()),
          "LaunchExtendAdd");
    });
    return status;
  }

  absl::StatusOr<NumericReport> Inspect() {
    const cudaStream_t stream = context_.stream();
    const auto whole = static_cast<int>(analysis_.fronts() - (analysis_.kept > 0 ? 1 : 0));
    if (analysis_.fronts() > 0) {
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchInspectPivots(tree_, whole, analysis_.first_position[whole],
                              At<int32_t>(layout_.border), memory_.factor, memory_.least,
                              {memory_.ipiv, reinterpret_cast<int32_t*>(factor_ + block_.pivots),
                               reinterpret_cast<int32_t*>(factor_ + block_.permutation),
                               reinterpret_cast<T*>(factor_ + block_.diagonal),
                               At<int32_t>(layout_.large), static_cast<int>(large_.size())},
                              report(), stream));
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchInspectFronts(tree_, memory_.factor, analysis_.factor_start[whole],
                              {LargestMultiplier(analysis_), analysis_.first_position[whole],
                               At<int32_t>(layout_.border), memory_.least.pivot_flags},
                              report(), stream));
    }
    CROUT_RETURN_IF_CUDA_ERROR(LaunchCompareTransposed(a_, report(), stream));
    NumericReport found;
    CROUT_RETURN_IF_ERROR(context_.ops().CopyToHost(report(), &found, sizeof(found)));
    CROUT_RETURN_IF_ERROR(context_.SynchronizeOrStop(stop_));
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
    return found;
  }

  // Finds the positions of pivots that were perturbed or unacceptable and that another front could
  // have eliminated.
  absl::Status FindPostponable(std::vector<int32_t>& positions) {
    std::vector<uint8_t> pivot_flags(analysis_.n);
    CROUT_RETURN_IF_ERROR(context_.ops().CopyToHost(memory_.least.pivot_flags, pivot_flags.data(),
                                                    pivot_flags.size()));
    CROUT_RETURN_IF_ERROR(context_.Synchronize());
    for (int64_t f = 0; f < analysis_.fronts(); ++f) {
      if (analysis_.parent[f] == -1) continue;
      for (int32_t k = analysis_.first_position[f]; k < analysis_.first_position[f + 1]; ++k) {
        if (pivot_flags[k] != 0) positions.push_back(k);
      }
    }
    return absl::OkStatus();
  }

  Context& context_;
  const LuPanelKernels& kernels_;
  const Analysis& analysis_;
  const AnySparse& a_;
  const LevelPlan& levels_;
  const Traversal& traversal_;
  const int32_t depth_;
  std::vector<int32_t> large_;       // fronts with many columns
  std::vector<int32_t> step_start_;  // first indices of steps in the traversal's order, ascending
  std::vector<int64_t> shift_;       // by step
  std::vector<FrontBatch> terminated_;  // ends with a batch without fronts
  const FactorBlock block_;
  std::byte* const factor_;
  const NumericWorkspace layout_;
  std::byte* const workspace_;
  const FrontTree tree_;
  const StopRequested& stop_;
  FrontMemory<T> memory_;
  FinalColumns columns_;
  double flops_ = 0;  // enqueued since the last mark
  Event marks_[2];
  bool marked_[2] = {};
  int64_t columns_at_[2] = {};
  int next_mark_ = 0;
  bool symmetric_ = false;
};

}  // namespace

size_t MultifrontalFactorBytes(const Analysis& analysis, DType dtype) {
  return FactorBlock(analysis, dtype).bytes;
}

size_t MultifrontalWorkspaceBytes(const LuPanelKernels& kernels, const Analysis& analysis,
                                  DType dtype, size_t most) {
  const LevelPlan levels(analysis);
  const Traversal traversal = TraversalWithin(kernels, analysis, levels, dtype, most);
  return NumericWorkspace(kernels, analysis, levels, traversal, dtype).bytes;
}

absl::StatusOr<NumericSummary> FactorMultifrontal(
    Context& context, const LuPanelKernels& kernels, const Analysis& analysis, const AnySparse& a,
    DType dtype, const std::byte* last, std::span<std::byte> factor, std::span<std::byte> workspace,
    StopRequested stop, std::vector<int32_t>* postponable) {
  CROUT_RETURN_IF_ERROR(CheckFits(analysis, a, dtype));
  StoredLevelPlan plan;
  if (last == nullptr) {
    plan.levels = LevelPlan(analysis);
  } else {
    CROUT_ASSIGN_OR_RETURN(plan,
                           ReadLevelPlan(context, analysis, FactorBlock(analysis, dtype), last));
  }
  const Traversal traversal =
      TraversalWithin(kernels, analysis, plan.levels, dtype, workspace.size());
  // With another traversal, the contributions have other places.
  if (plan.depth != traversal.depth()) last = nullptr;
  return DispatchDevice(dtype, [&](auto tag) -> absl::StatusOr<NumericSummary> {
    using T = typename decltype(tag)::type;
    Numeric<T> numeric(context, kernels, analysis, plan.levels, traversal, a, factor.data(),
                       workspace.data(), stop);
    SyncOnExit sync(context);
    CROUT_ASSIGN_OR_RETURN(const NumericFindings found, numeric.Run(last, postponable));
    sync.Dismiss();
    return Summarize(analysis, found, dtype, [&] { return numeric.symmetric(); });
  });
}

absl::StatusOr<LogDeterminant> MultifrontalDeterminant(Context& context, const Analysis& analysis,
                                                       const NumericSummary& summary,
                                                       const std::byte* factor, DType dtype) {
  const FactorBlock block(analysis, dtype);
  return DispatchDType(dtype, [&](auto tag) -> absl::StatusOr<LogDeterminant> {
    using T = typename decltype(tag)::type;
    std::vector<T> diagonal(analysis.n);
    std::vector<int32_t> interchanges(analysis.n);
    CROUT_RETURN_IF_ERROR(context.ops().CopyToHost(factor + block.diagonal, diagonal.data(),
                                                   diagonal.size() * sizeof(T)));
    CROUT_RETURN_IF_ERROR(context.ops().CopyToHost(factor + block.pivots, interchanges.data(),
                                                   interchanges.size() * sizeof(int32_t)));
    CROUT_RETURN_IF_ERROR(context.Synchronize());
    return DeterminantOf(analysis, summary, diagonal.data(), interchanges.data());
  });
}

}  // namespace crout::cuda
