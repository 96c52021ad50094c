// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout_lu/crout_lu.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/blocked/interchange_rows.h"
#include "kernels/cuda/blocked/lu_product.h"
#include "kernels/cuda/blocked/tiles.h"
#include "kernels/cuda/crout_lu/block_row.h"
#include "kernels/cuda/crout_lu/deferred_interchanges.h"
#include "kernels/cuda/crout_lu/lu_workspace.h"
#include "kernels/cuda/crout_lu/panel_update.h"
#include "kernels/cuda/crout_lu/tf32_product.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

constexpr int64_t kMaxBlock = BlockRowPlan<double>::kMaxRows;
// Blocks of threads that interchange rows while a product runs: one for each multiprocessor that
// the trailing queue leaves free. More would take bandwidth that the product needs.
constexpr unsigned kMovingBlocks = LookAhead::kSparedMultiprocessors;

template <class T>
class CroutLu final : public PanelwiseLu {
 public:
  CroutLu(const LuStreams& streams, const LuPanelKernels& kernels, const LuBlocking& blocking,
          const MatrixView<T>& a, int64_t* ipiv, std::span<std::byte> workspace,
          const StopRequested& stop)
      : streams_(streams),
        kernels_(kernels),
        by_products_(kernels.clusters() && SolveRowsBytes<T>() <= kernels.limits().DynamicBytes(0)),
        moves_by_products_(by_products_ && Moves(kernels.limits())),
        blocking_(blocking),
        a_(a),
        columns_(std::min(a.rows, a.cols)),
        panels_(blocking.panels(columns_)),
        panel_{0, panels_.EndOf(0)},
        ipiv_(ipiv),
        layout_(LuWorkspace::For(kernels, blocking, kDTypeOf<T>, a.rows, columns_)),
        workspace_(workspace.data()),
        control_(reinterpret_cast<LuControl<T>*>(workspace_)),
        stop_(stop) {}

  absl::Status Advance() override {
    if (!begun_) {
      done_ = true;  // holds if Begin() fails
      CROUT_RETURN_IF_ERROR(Begin());
    }
    if (!blocking_.look_ahead || panels_.EndOf(0) >= columns_) return FactorWithoutLookAhead();
    const absl::Status status = AdvanceAhead();
    begun_ = true;
    done_ = !status.ok() || panel_.begin >= columns_;
    if (!done_) return absl::OkStatus();
    // On success and on error, later work on the main queue follows everything enqueued on the
    // other queues.
    const absl::Status joined = streams_.ahead.Join();
    CROUT_RETURN_IF_ERROR(status);
    CROUT_RETURN_IF_ERROR(joined);
    CROUT_RETURN_IF_CUDA_ERROR(LaunchDeferredInterchanges(
        a_, ipiv_, panels_, workspace_ + layout_.deferred, control_, streams_.main.stream));
    return absl::OkStatus();
  }
  bool done() const override { return done_; }

 private:
  // Columns [begin, end).
  struct Range {
    int64_t begin;
    int64_t end;
  };

  static constexpr bool kIsSingle = std::is_same_v<RealPart<T>, float>;
  // No GPU has enough shared memory for blocks of complex128.
  static constexpr bool kHasMovingKernel = sizeof(T) <= sizeof(double);
  static bool Moves(const DeviceLimits& limits) {
    if constexpr (kHasMovingKernel) {
      return BlockRowBytes<T>() <= limits.DynamicBytes(0);
    } else {
      return false;
    }
  }

  // A plan and the first row that it covers. A null `plan` selects the plans of the panel's blocks.
  struct PlanFrom {
    const BlockRowPlan<T>* plan = nullptr;
    int64_t begin = 0;
  };

  MatrixView<T> Block(Range rows, Range columns) const {
    return {a_.data + rows.begin + columns.begin * a_.ld, rows.end - rows.begin,
            columns.end - columns.begin, a_.ld};
  }
  MatrixView<T> Columns(Range columns) const { return Block({0, a_.rows}, columns); }

  absl::Status Begin() {
    CROUT_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(
        workspace_ + layout_.scratch, 0, layout_.bytes - layout_.scratch, streams_.main.stream));
    CROUT_RETURN_IF_CUDA_ERROR(LaunchStartLu(control_, streams_.main.stream));
    return absl::OkStatus();
  }

  absl::Status FactorWithoutLookAhead() {
    const Queue& queue = streams_.main;
    CROUT_RETURN_IF_ERROR(queue.Bind());
    const DeviceScalars scalars(queue.cublas);
    CROUT_RETURN_IF_ERROR(Factor(queue, {0, columns_}, {0, columns_}));
    if (columns_ == a_.cols) return absl::OkStatus();
    CROUT_RETURN_IF_CUDA_ERROR(LaunchInterchangeRows(Columns({columns_, a_.cols}), ipiv_, 0,
                                                     columns_, &PlanWithin()->interchanges,
                                                     control_, queue.stream));
    return Update(queue, {0, columns_}, {columns_, a_.cols});
  }

  // Enqueues the update by the current panel and, beside it on the urgent queue, the factorization
  // of the next one.
  absl::Status AdvanceAhead() {
    LookAhead& ahead = streams_.ahead;
    const DeviceScalars urgent_scalars(ahead.urgent().cublas);
    const DeviceScalars trailing_scalars(ahead.trailing().cublas);
    CROUT_RETURN_IF_ERROR(
        ahead.Bind({workspace_ + layout_.cublas, Context::kCublasWorkspaceBytes}));
    if (!begun_) {
      CROUT_RETURN_IF_ERROR(ahead.Fork());
      CROUT_RETURN_IF_ERROR(FactorPanel(ahead, panel_));
    }
    // The panel is factored; the columns of the next panel lack only this panel's update.
    CROUT_RETURN_IF_ERROR(ahead.SyncQueues());
    CROUT_RETURN_IF_ERROR(Split(ahead, panel_));
    CROUT_RETURN_IF_ERROR(OverlapsSwaps(panel_) ? UpdateOverlapped(ahead, panel_)
                                                : UpdateAtOnce(ahead, panel_));
    panel_ = NextOf(panel_);
    return absl::OkStatus();
  }

  Range NextOf(Range panel) const { return {panel.end, panels_.EndOf(panel.end)}; }
  bool OverlapsSwaps(Range panel) const {
    return panel.end - panel.begin > blocking_.block &&
           columns_ - panel.begin >= blocking_.overlap_left;
  }

  // The columns after the next panel, in two halves. The right half lies inside the right half of
  // the previous panel, so its rows can move once that half is updated.
  Range TrailingOf(Range panel) const { return {NextOf(panel).end, a_.cols}; }
  Range RightOf(Range panel) const {
    const auto [begin, end] = TrailingOf(panel);
    return {std::max(begin, (begin + end) / 2 / blocking_.block * blocking_.block), end};
  }
  Range LeftOf(Range panel) const { return {TrailingOf(panel).begin, RightOf(panel).begin}; }

  // Factors the panel on the urgent queue and plans its block rows for the trailing queue.
  absl::Status FactorPanel(LookAhead& ahead, Range panel) {
    const Queue urgent = ahead.urgent();
    CROUT_RETURN_IF_ERROR(Factor(urgent, panel, panel));
    CROUT_RETURN_IF_ERROR(ForBlocks(panel, [&](Range block) {
      return Plan(urgent, block, ipiv_ + block.begin, PlanOf(block.begin));
    }));
    if (!OverlapsSwaps(panel)) return absl::OkStatus();
    // Wait for the update of the previous panel's right half.
    CROUT_RETURN_IF_ERROR(ahead.UrgentAwaitsTrailing());
    const bool alone = panel.begin == 0;
    return MoveRows(urgent, panel, RightOf(panel), alone ? kAnyBlocks : kMovingBlocks);
  }

  // Splits the part of L below the panel for the products on both queues.
  absl::Status Split(LookAhead& ahead, Range panel) {
    if constexpr (kIsSingle) {
      if (blocking_.tf32) {
        CROUT_RETURN_IF_ERROR(SplitLeft(ahead.urgent(), *control_,
                                        Block({panel.end, a_.rows}, panel),
                                        workspace_ + layout_.split));
        return ahead.TrailingAwaitsUrgent();
      }
    }
    return absl::OkStatus();
  }

  // Factors the next panel while the trailing matrix is updated.
  absl::Status UpdateAtOnce(LookAhead& ahead, Range panel) {
    CROUT_RETURN_IF_ERROR(UpdateNext(ahead, panel));
    CROUT_RETURN_IF_ERROR(BlockRows(ahead.trailing(), panel, TrailingOf(panel)));
    CROUT_RETURN_IF_ERROR(
        SubtractFast(ahead.trailing(), panel, TrailingOf(panel), layout_.split_trailing));
    return FactorPanel(ahead, NextOf(panel));
  }

  // Like UpdateAtOnce, but the urgent queue also interchanges the rows of the trailing matrix, each
  // half during the product of the other half. The left half moves here. The right half moves in
  // FactorPanel, during the product of the previous panel's left half. A queue waits only for the
  // work enqueued on the other queue before the wait, so the order of these calls matters.
  absl::Status UpdateOverlapped(LookAhead& ahead, Range panel) {
    CROUT_RETURN_IF_ERROR(MoveRows(ahead.urgent(), panel, LeftOf(panel), kMovingBlocks));
    CROUT_RETURN_IF_ERROR(UpdateMoved(ahead.trailing(), panel, RightOf(panel)));
    CROUT_RETURN_IF_ERROR(ahead.TrailingAwaitsUrgent());
    CROUT_RETURN_IF_ERROR(UpdateNext(ahead, panel));
    CROUT_RETURN_IF_ERROR(FactorPanel(ahead, NextOf(panel)));
    return UpdateMoved(ahead.trailing(), panel, LeftOf(panel));
  }

  absl::Status UpdateNext(LookAhead& ahead, Range panel) {
    CROUT_RETURN_IF_ERROR(BlockRows(ahead.urgent(), panel, NextOf(panel)));
    return SubtractFast(ahead.urgent(), panel, NextOf(panel), layout_.split_next);
  }

  absl::Status UpdateMoved(const Queue& queue, Range panel, Range columns) {
    CROUT_RETURN_IF_ERROR(SolveLower(queue, panel, columns));
    return SubtractFast(queue, panel, columns, layout_.split_trailing);
  }

  // Calls f(block) for each block of the panel until a call fails.
  template <class F>
  absl::Status ForBlocks(Range panel, F f) const {
    for (int64_t begin = panel.begin; begin < panel.end; begin += blocking_.block) {
      CROUT_RETURN_IF_ERROR(f(Range{begin, std::min(begin + blocking_.block, panel.end)}));
    }
    return absl::OkStatus();
  }

  // Factors `columns`, which belong to `block`, in the rows from the first of these columns on.
  // Applies the interchanges to the whole block.
  absl::Status Factor(const Queue& queue, Range columns, Range block) {
    const auto [begin, end] = columns;
    if (begin == end) return absl::OkStatus();
    const int64_t inner = RightLookingColumns(begin);
    if (end - begin <= inner) return FactorInner(queue, columns, block);
    const int64_t pieces = (end - begin + inner - 1) / inner;
    const int64_t middle = begin + pieces / 2 * inner;
    CROUT_RETURN_IF_ERROR(Factor(queue, {begin, middle}, block));
    CROUT_RETURN_IF_ERROR(Update(queue, {begin, middle}, {middle, end}));
    return Factor(queue, {middle, end}, block);
  }

  // The number of columns that are updated after each leaf. Every leaf reads and writes all of them
  // again, so high panels update few columns at once.
  int64_t RightLookingColumns(int64_t begin) const {
    constexpr int64_t kUnit = LuPanelKernels::kMaxWidth;
    return std::max(kUnit, blocking_.right_looking / (a_.rows - begin) / kUnit * kUnit);
  }

  absl::Status FactorInner(const Queue& queue, Range columns, Range block) {
    for (int64_t leaf = columns.begin; leaf < columns.end;) {
      if (const absl::Status status = CheckNotStopped(stop_); !status.ok()) {
        streams_.report.stop = 1;
        return status;
      }
      const int64_t width = kernels_.WidthFor(kDTypeOf<T>, a_.rows, leaf);
      const int64_t leaf_end = std::min(leaf + width, columns.end);
      const LuPanel<T> panel = Panel(leaf, leaf_end);
      const Range rows = {leaf, a_.rows};
      CROUT_RETURN_IF_CUDA_ERROR(kernels_.Launch(panel, queue.stream));
      const MatrixView<T> right = Block(rows, {leaf_end, columns.end});
      CROUT_RETURN_IF_CUDA_ERROR(LaunchSwapAndSolve(panel, Block(rows, {block.begin, leaf}), right,
                                                    Block(rows, {columns.end, block.end}),
                                                    kernels_.clusters(), queue.stream));
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchSubtractPanel(panel, right, kernels_.clusters(), queue.stream));
      leaf = leaf_end;
    }
    return absl::OkStatus();
  }

  // Updates `columns` after the columns `factored`. The interchanges are already applied to
  // `columns`.
  absl::Status Update(const Queue& queue, Range factored, Range columns) {
    for (int64_t begin = factored.begin; begin < factored.end;) {
      const Range block = {begin, std::min(begin + kMaxBlock, factored.end)};
      CROUT_RETURN_IF_ERROR(Plan(queue, block, nullptr, PlanWithin()));
      CROUT_RETURN_IF_ERROR(moves_by_products_
                                ? BlockRow(queue, block, PlanWithin(), columns)
                                : SolveLower(queue, block, columns, {PlanWithin(), begin}));
      CROUT_RETURN_IF_ERROR(Subtract(queue, block, columns));
      begin = block.end;
    }
    return absl::OkStatus();
  }

  absl::Status Plan(const Queue& queue, Range block, const int64_t* ipiv, BlockRowPlan<T>* plan) {
    CROUT_RETURN_IF_CUDA_ERROR(LaunchPlanBlockRow(Block(block, block), ipiv, block.begin, plan,
                                                  control_, kernels_.clusters(), queue.stream));
    return absl::OkStatus();
  }

  // Applies the interchanges of `block` to `columns` and computes the block's rows of U there.
  absl::Status BlockRow(const Queue& queue, Range block, const BlockRowPlan<T>* plan,
                        Range columns) {
    if constexpr (kHasMovingKernel) {
      if (moves_by_products_) {
        CROUT_RETURN_IF_CUDA_ERROR(LaunchBlockRow(Block(block, block), plan,
                                                  Block({block.begin, a_.rows}, columns), control_,
                                                  true, queue.stream));
        return absl::OkStatus();
      }
    }
    // The GPU lacks the shared memory for the fused kernel, or the elements are too large for it.
    CROUT_RETURN_IF_ERROR(Interchange(queue, block, plan, columns, kAnyBlocks));
    return SolveLower(queue, block, columns, {plan, block.begin});
  }

  // BlockRow for a whole panel.
  absl::Status BlockRows(const Queue& queue, Range panel, Range columns) {
    if (panel.end - panel.begin <= blocking_.block) {
      return BlockRow(queue, panel, PlanOf(panel.begin), columns);
    }
    CROUT_RETURN_IF_ERROR(MoveRows(queue, panel, columns, kAnyBlocks));
    return SolveLower(queue, panel, columns);
  }

  absl::Status MoveRows(const Queue& queue, Range panel, Range columns, unsigned max_blocks) {
    return ForBlocks(panel, [&](Range block) {
      return Interchange(queue, block, PlanOf(block.begin), columns, max_blocks);
    });
  }

  absl::Status Interchange(const Queue& queue, Range block, const BlockRowPlan<T>* plan,
                           Range columns, unsigned max_blocks) {
    CROUT_RETURN_IF_CUDA_ERROR(LaunchInterchangeRows(Block({block.begin, a_.rows}, columns),
                                                     &plan->interchanges, block.end - block.begin,
                                                     control_, queue.stream, max_blocks));
    return absl::OkStatus();
  }

  // Computes the rows `block` of U, by products if the panel has plans. The recursion halves the
  // rows, because most operations are in the products between the halves. It cuts at the borders of
  // plans first.
  absl::Status SolveLower(const Queue& queue, Range block, Range columns, PlanFrom plan = {}) {
    const int64_t order = block.end - block.begin;
    const int64_t most = !by_products_             ? kMaxSolveTile<T>
                         : order > blocking_.block ? blocking_.block
                                                   : kSolvedRows;
    if (order <= most) return SolvePiece(queue, block, columns, plan);
    const int64_t pieces = (order + most - 1) / most;
    const Range upper = {block.begin, block.begin + pieces / 2 * most};
    const Range lower = {upper.end, block.end};
    CROUT_RETURN_IF_ERROR(SolveLower(queue, upper, columns, plan));
    CROUT_RETURN_IF_ERROR(Subtract(queue, lower, upper, columns));
    return SolveLower(queue, lower, columns, plan);
  }
  absl::Status SolvePiece(const Queue& queue, Range piece, Range columns, PlanFrom plan) {
    const MatrixView<T> triangle = Block(piece, piece);
    const MatrixView<T> b = Block(piece, columns);
    if (by_products_) {
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchSolveRows(triangle, TilesOf(piece.begin, plan), b, control_, true, queue.stream));
    } else {
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchSolveTile(TileSolve::kUnitLower, triangle, b, control_, queue.stream));
    }
    return absl::OkStatus();
  }

  // Subtracts the product of (rows, block) and (block, columns) from (rows, columns).
  absl::Status Subtract(const Queue& queue, Range rows, Range block, Range columns) {
    return SubtractLuProduct(queue.cublas, *control_, Block(rows, block), Block(block, columns),
                             Block(rows, columns));
  }
  absl::Status Subtract(const Queue& queue, Range block, Range columns) {
    return Subtract(queue, {block.end, a_.rows}, block, columns);
  }

  // Subtracts the same product by the fastest kernel for the type. Requires Split(). `right` is the
  // workspace offset of the queue's TF32 parts of its right factor.
  absl::Status SubtractFast(const Queue& queue, Range block, Range columns, size_t right) {
    const Range rows = {block.end, a_.rows};
    if constexpr (kIsSingle) {
      if (blocking_.one_tf32_product) {
        return SubtractOneTf32Product(queue, *control_, Block(rows, block), Block(block, columns),
                                      Block(rows, columns));
      }
      if (blocking_.tf32) {
        return SubtractTf32Product(queue, *control_, workspace_ + layout_.split,
                                   Block(block, columns), Block(rows, columns), workspace_ + right);
      }
    }
    return Subtract(queue, rows, block, columns);
  }

  BlockRowPlan<T>* Plans() const {
    return reinterpret_cast<BlockRowPlan<T>*>(workspace_ + layout_.plans);
  }
  // The plan of the panel's block that contains the column. It stays valid until the panel after
  // the next one is factored.
  BlockRowPlan<T>* PlanOf(int64_t column) const {
    return Plans() + column / blocking_.block % kPlansOfPanels;
  }
  const TileInverse<T>* TilesOf(int64_t row, PlanFrom from) const {
    constexpr int64_t kTile = BlockRowPlan<T>::kTile;
    if (from.plan != nullptr) return from.plan->tiles + (row - from.begin) / kTile;
    return PlanOf(row)->tiles + row % blocking_.block / kTile;
  }
  BlockRowPlan<T>* PlanWithin() const { return Plans() + kPlansOfPanels; }

  LuPanel<T> Panel(int64_t begin, int64_t end) const {
    LuPanel<T> panel;
    panel.a = Block({begin, a_.rows}, {begin, end});
    panel.begin = begin;
    panel.ipiv = ipiv_;
    panel.control = control_;
    panel.host = HostSignals(streams_.report);
    if (!streams_.reports_columns) panel.host.columns = nullptr;
    panel.scratch = workspace_ + layout_.scratch;
    return panel;
  }

  const LuStreams streams_;
  const LuPanelKernels& kernels_;
  // by_products_: rows of U are computed by products with inverses of tiles; requires clusters and
  // enough shared memory. moves_by_products_: the same kernel also interchanges the rows; requires
  // more shared memory.
  const bool by_products_;
  const bool moves_by_products_;
  const LuBlocking blocking_;
  const MatrixView<T> a_;
  const int64_t columns_;
  const PanelLayout panels_;
  Range panel_;  // its update is next
  bool begun_ = false;
  bool done_ = false;
  int64_t* const ipiv_;
  const LuWorkspace layout_;
  std::byte* const workspace_;
  LuControl<T>* const control_;
  const StopRequested& stop_;
};

}  // namespace

const int* CroutLuInfo(DType dtype, std::span<const std::byte> workspace) {
  return DispatchDevice(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return &reinterpret_cast<const LuControl<T>*>(workspace.data())->info;
  });
}

template <class T>
absl::StatusOr<std::unique_ptr<PanelwiseLu>> MakePanelwiseCroutLu(
    const LuStreams& streams, const LuPanelKernels& kernels, const LuBlocking& blocking,
    const MatrixView<T>& a, int64_t* ipiv, std::span<std::byte> workspace,
    const StopRequested& stop) {
  const size_t bytes =
      CroutLuWorkspaceBytes(kernels, blocking, kDTypeOf<T>, a.rows, std::min(a.rows, a.cols));
  if (workspace.size() < bytes) {
    return absl::InternalError(
        absl::StrCat("crout_lu needs ", bytes, " bytes of workspace, got ", workspace.size()));
  }
  return std::make_unique<CroutLu<T>>(streams, kernels, blocking, a, ipiv, workspace, stop);
}

template <class T>
absl::Status EnqueueCroutLu(const LuStreams& streams, const LuPanelKernels& kernels,
                            const LuBlocking& blocking, const MatrixView<T>& a, int64_t* ipiv,
                            std::span<std::byte> workspace, const StopRequested& stop) {
  CROUT_ASSIGN_OR_RETURN(
      const std::unique_ptr<PanelwiseLu> lu,
      MakePanelwiseCroutLu(streams, kernels, blocking, a, ipiv, workspace, stop));
  streams.report.stop = 0;
  while (!lu->done()) CROUT_RETURN_IF_ERROR(lu->Advance());
  return absl::OkStatus();
}

#define CROUT_INSTANTIATE(T)                                                                       \
  template absl::StatusOr<std::unique_ptr<PanelwiseLu>> MakePanelwiseCroutLu(                      \
      const LuStreams&, const LuPanelKernels&, const LuBlocking&, const MatrixView<T>&, int64_t*,  \
      std::span<std::byte>, const StopRequested&);                                                 \
  template absl::Status EnqueueCroutLu(const LuStreams&, const LuPanelKernels&, const LuBlocking&, \
                                       const MatrixView<T>&, int64_t*, std::span<std::byte>,       \
                                       const StopRequested&)
CROUT_INSTANTIATE(float);
CROUT_INSTANTIATE(double);
CROUT_INSTANTIATE(Complex<float>);
CROUT_INSTANTIATE(Complex<double>);
#undef CROUT_INSTANTIATE

}  // namespace crout::cuda
