#include "kernels/cuda/crout_lu/crout_lu.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/blocked/interchange_rows.h"
#include "kernels/cuda/blocked/lu_product.h"
#include "kernels/cuda/blocked/solve_tile.h"
#include "kernels/cuda/crout_lu/block_row.h"
#include "kernels/cuda/crout_lu/deferred_interchanges.h"
#include "kernels/cuda/crout_lu/panel_update.h"
#include "kernels/cuda/crout_lu/tf32_product.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

constexpr int64_t kMaxBlock = BlockRowPlan<double>::kMaxRows;
// Plans of block rows: those of the blocks of two panels in a row, while one lane is behind the
// other, and one for blocks within a panel.
constexpr int kPlansOfPanels = 2 * PanelLayout::kMostBlocks;
constexpr int kPlans = kPlansOfPanels + 1;
// Blocks of threads that interchange rows while a product runs: one for each of the multiprocessors
// that the trailing lane leaves. More take bandwidth that the product needs.
constexpr unsigned kMovingBlocks = LookAhead::kSparedMultiprocessors;

size_t PlanBytes(DType dtype) {
  return DispatchDevice(
      dtype, [](auto tag) { return sizeof(BlockRowPlan<typename decltype(tag)::type>); });
}

// Offsets of what the workspace holds behind the control. cuBLAS wants its own at a multiple of 256
// bytes.
struct Workspace {
  static constexpr size_t kAlignment = 256;

  size_t plans = kAlignment;
  size_t cublas = 0;  // of the urgent lane; this and the next two with look-ahead
  size_t deferred = 0;
  size_t split = 0;           // a panel's parts of TF32 numbers, as the next two
  size_t split_trailing = 0;  // of its rows of U, in the trailing matrix
  size_t split_next = 0;      // and in the next panel
  size_t scratch = 0;         // of the panels
  size_t bytes = 0;

  static Workspace For(const LuPanelKernels& kernels, const LuBlocking& blocking, DType dtype,
                       int64_t m, int64_t columns) {
    Workspace w;
    size_t end = w.plans + kPlans * PlanBytes(dtype);
    const auto take = [&](bool wanted, size_t bytes) {
      const size_t begin = (end + kAlignment - 1) / kAlignment * kAlignment;
      end = begin + (wanted ? bytes : 0);
      return begin;
    };
    const PanelLayout panels = blocking.panels(columns);
    w.cublas = take(blocking.look_ahead, Context::kCublasWorkspaceBytes);
    w.deferred = take(blocking.look_ahead, DeferredInterchangesBytes(dtype, m, panels));
    const int64_t width = panels.EndOf(0);
    w.split = take(blocking.tf32, Tf32LeftBytes(dtype, m, width));
    constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
    w.split_trailing = take(blocking.tf32, Tf32RightBytes(dtype, m, width, kAny));
    w.split_next = take(blocking.tf32, Tf32RightBytes(dtype, m, width, width));
    w.scratch = take(true, kernels.ScratchBytes(dtype, m));
    w.bytes = end;
    return w;
  }
};

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
        layout_(Workspace::For(kernels, blocking, kDTypeOf<T>, a.rows, columns_)),
        workspace_(workspace.data()),
        control_(reinterpret_cast<LuControl<T>*>(workspace_)),
        stop_(stop) {}

  absl::Status Advance() override {
    if (!begun_) {
      done_ = true;  // if it fails
      CROUT_RETURN_IF_ERROR(Begin());
    }
    if (!blocking_.look_ahead || panels_.EndOf(0) >= columns_) return FactorAtOnce();
    const absl::Status status = AdvanceAhead();
    begun_ = true;
    done_ = !status.ok() || panel_.begin >= columns_;
    if (!done_) return absl::OkStatus();
    // Whatever happened: what follows on the main lane comes after all of it.
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
  // There is no GPU with the shared memory for blocks of complex128.
  static constexpr bool kHasMovingKernel = sizeof(T) <= sizeof(double);
  static bool Moves(const DeviceLimits& limits) {
    if constexpr (kHasMovingKernel) {
      return BlockRowBytes<T>() <= limits.DynamicBytes(0);
    } else {
      return false;
    }
  }

  // A plan whose first row is that; or, without one, the plans of the panel's blocks.
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

  absl::Status FactorAtOnce() {
    const Lane& lane = streams_.main;
    CROUT_RETURN_IF_ERROR(lane.Bind());
    const DeviceScalars scalars(lane.cublas);
    CROUT_RETURN_IF_ERROR(Factor(lane, {0, columns_}, {0, columns_}));
    if (columns_ == a_.cols) return absl::OkStatus();
    CROUT_RETURN_IF_CUDA_ERROR(LaunchInterchangeRows(Columns({columns_, a_.cols}), ipiv_, 0,
                                                     columns_, &PlanWithin()->interchanges,
                                                     control_, lane.stream));
    return Update(lane, {0, columns_}, {columns_, a_.cols});
  }

  // The next panel, on the urgent lane, beside the update by the one before.
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
    // The panel is there; the columns of the next one have every update but this panel's.
    CROUT_RETURN_IF_ERROR(ahead.Meet());
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

  // The columns behind the next panel, in two halves. The right one is part of the right one of the
  // panel before: once that is updated, its rows can move.
  Range TrailingOf(Range panel) const { return {NextOf(panel).end, a_.cols}; }
  Range RightOf(Range panel) const {
    const auto [begin, end] = TrailingOf(panel);
    return {std::max(begin, (begin + end) / 2 / blocking_.block * blocking_.block), end};
  }
  Range LeftOf(Range panel) const { return {TrailingOf(panel).begin, RightOf(panel).begin}; }

  // On the urgent lane, with what the trailing lane needs for the panel's update.
  absl::Status FactorPanel(LookAhead& ahead, Range panel) {
    const Lane urgent = ahead.urgent();
    CROUT_RETURN_IF_ERROR(Factor(urgent, panel, panel));
    CROUT_RETURN_IF_ERROR(ForBlocks(panel, [&](Range block) {
      return Plan(urgent, block, ipiv_ + block.begin, PlanOf(block.begin));
    }));
    if (!OverlapsSwaps(panel)) return absl::OkStatus();
    CROUT_RETURN_IF_ERROR(ahead.UrgentAwaitsTrailing());  // with the panel before's right half
    const bool alone = panel.begin == 0;
    return MoveRows(urgent, panel, RightOf(panel), alone ? kAnyBlocks : kMovingBlocks);
  }

  // What is below a panel, for the products of both lanes.
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

  // The next panel is factored while the trailing matrix is updated.
  absl::Status UpdateAtOnce(LookAhead& ahead, Range panel) {
    CROUT_RETURN_IF_ERROR(UpdateNext(ahead, panel));
    CROUT_RETURN_IF_ERROR(BlockRows(ahead.trailing(), panel, TrailingOf(panel)));
    CROUT_RETURN_IF_ERROR(
        SubtractFast(ahead.trailing(), panel, TrailingOf(panel), layout_.split_trailing));
    return FactorPanel(ahead, NextOf(panel));
  }

  // The same where the urgent lane interchanges the trailing matrix's rows too, those of each half
  // during the product of the other: the left half's here, the right half's, in FactorPanel, during
  // the product of the left half of the panel before. A lane awaits what the other was given so
  // far, and no more: hence the order.
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

  absl::Status UpdateMoved(const Lane& lane, Range panel, Range columns) {
    CROUT_RETURN_IF_ERROR(SolveLower(lane, panel, columns));
    return SubtractFast(lane, panel, columns, layout_.split_trailing);
  }

  // Calls f(block) for each of a panel's blocks until one fails.
  template <class F>
  absl::Status ForBlocks(Range panel, F f) const {
    for (int64_t begin = panel.begin; begin < panel.end; begin += blocking_.block) {
      CROUT_RETURN_IF_ERROR(f(Range{begin, std::min(begin + blocking_.block, panel.end)}));
    }
    return absl::OkStatus();
  }

  // These columns of `block`, of the rows from the first of them on; the interchanges are those of
  // the whole block.
  absl::Status Factor(const Lane& lane, Range columns, Range block) {
    const auto [begin, end] = columns;
    if (begin == end) return absl::OkStatus();
    const int64_t inner = RightLookingColumns(begin);
    if (end - begin <= inner) return FactorInner(lane, columns, block);
    const int64_t pieces = (end - begin + inner - 1) / inner;
    const int64_t middle = begin + pieces / 2 * inner;
    CROUT_RETURN_IF_ERROR(Factor(lane, {begin, middle}, block));
    CROUT_RETURN_IF_ERROR(Update(lane, {begin, middle}, {middle, end}));
    return Factor(lane, {middle, end}, block);
  }

  // What is subtracted after a leaf is read and written for each of its few columns again.
  int64_t RightLookingColumns(int64_t begin) const {
    constexpr int64_t kUnit = LuPanelKernels::kMaxWidth;
    return std::max(kUnit, blocking_.right_looking / (a_.rows - begin) / kUnit * kUnit);
  }

  absl::Status FactorInner(const Lane& lane, Range columns, Range block) {
    for (int64_t leaf = columns.begin; leaf < columns.end;) {
      if (const absl::Status status = CheckNotStopped(stop_); !status.ok()) {
        streams_.report.stop = 1;
        return status;
      }
      const int64_t width = kernels_.WidthFor(kDTypeOf<T>, a_.rows, leaf);
      const int64_t behind = std::min(leaf + width, columns.end);
      const LuPanel<T> panel = Panel(leaf, behind);
      const Range rows = {leaf, a_.rows};
      CROUT_RETURN_IF_CUDA_ERROR(kernels_.Launch(panel, lane.stream));
      const MatrixView<T> right = Block(rows, {behind, columns.end});
      CROUT_RETURN_IF_CUDA_ERROR(LaunchSwapAndSolve(panel, Block(rows, {block.begin, leaf}), right,
                                                    Block(rows, {columns.end, block.end}),
                                                    kernels_.clusters(), lane.stream));
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchSubtractPanel(panel, right, kernels_.clusters(), lane.stream));
      leaf = behind;
    }
    return absl::OkStatus();
  }

  // `columns` after these factored ones, whose interchanges they have.
  absl::Status Update(const Lane& lane, Range factored, Range columns) {
    for (int64_t begin = factored.begin; begin < factored.end;) {
      const Range block = {begin, std::min(begin + kMaxBlock, factored.end)};
      CROUT_RETURN_IF_ERROR(Plan(lane, block, nullptr, PlanWithin()));
      CROUT_RETURN_IF_ERROR(moves_by_products_
                                ? BlockRow(lane, block, PlanWithin(), columns)
                                : SolveLower(lane, block, columns, {PlanWithin(), begin}));
      CROUT_RETURN_IF_ERROR(Subtract(lane, block, columns));
      begin = block.end;
    }
    return absl::OkStatus();
  }

  absl::Status Plan(const Lane& lane, Range block, const int64_t* ipiv, BlockRowPlan<T>* plan) {
    CROUT_RETURN_IF_CUDA_ERROR(LaunchPlanBlockRow(Block(block, block), ipiv, block.begin, plan,
                                                  control_, kernels_.clusters(), lane.stream));
    return absl::OkStatus();
  }

  // A block's interchanges and its rows of U.
  absl::Status BlockRow(const Lane& lane, Range block, const BlockRowPlan<T>* plan, Range columns) {
    if constexpr (kHasMovingKernel) {
      if (moves_by_products_) {
        CROUT_RETURN_IF_CUDA_ERROR(LaunchBlockRow(Block(block, block), plan,
                                                  Block({block.begin, a_.rows}, columns), control_,
                                                  true, lane.stream));
        return absl::OkStatus();
      }
    }
    // Not all GPUs have the shared memory for it.
    CROUT_RETURN_IF_ERROR(Interchange(lane, block, plan, columns, kAnyBlocks));
    return SolveLower(lane, block, columns, {plan, block.begin});
  }

  // The same of a whole panel.
  absl::Status BlockRows(const Lane& lane, Range panel, Range columns) {
    if (panel.end - panel.begin <= blocking_.block) {
      return BlockRow(lane, panel, PlanOf(panel.begin), columns);
    }
    CROUT_RETURN_IF_ERROR(MoveRows(lane, panel, columns, kAnyBlocks));
    return SolveLower(lane, panel, columns);
  }

  absl::Status MoveRows(const Lane& lane, Range panel, Range columns, unsigned most_blocks) {
    return ForBlocks(panel, [&](Range block) {
      return Interchange(lane, block, PlanOf(block.begin), columns, most_blocks);
    });
  }

  absl::Status Interchange(const Lane& lane, Range block, const BlockRowPlan<T>* plan,
                           Range columns, unsigned most_blocks) {
    CROUT_RETURN_IF_CUDA_ERROR(LaunchInterchangeRows(Block({block.begin, a_.rows}, columns),
                                                     &plan->interchanges, block.end - block.begin,
                                                     control_, lane.stream, most_blocks));
    return absl::OkStatus();
  }

  // The rows `block` of U, by products of a panel that has plans. By halves: the products between
  // them are where the operations are. Cut between the plans first.
  absl::Status SolveLower(const Lane& lane, Range block, Range columns, PlanFrom plan = {}) {
    const int64_t order = block.end - block.begin;
    const int64_t most = !by_products_             ? kMaxSolveTile<T>
                         : order > blocking_.block ? blocking_.block
                                                   : kSolvedRows;
    if (order <= most) return SolvePiece(lane, block, columns, plan);
    const int64_t pieces = (order + most - 1) / most;
    const Range upper = {block.begin, block.begin + pieces / 2 * most};
    const Range lower = {upper.end, block.end};
    CROUT_RETURN_IF_ERROR(SolveLower(lane, upper, columns, plan));
    CROUT_RETURN_IF_ERROR(Subtract(lane, lower, upper, columns));
    return SolveLower(lane, lower, columns, plan);
  }
  absl::Status SolvePiece(const Lane& lane, Range piece, Range columns, PlanFrom plan) {
    const MatrixView<T> triangle = Block(piece, piece);
    const MatrixView<T> b = Block(piece, columns);
    if (by_products_) {
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchSolveRows(triangle, TilesOf(piece.begin, plan), b, control_, true, lane.stream));
    } else {
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchSolveTile(TileSolve::kUnitLower, triangle, b, control_, lane.stream));
    }
    return absl::OkStatus();
  }

  // From the rows `rows`, what the columns and rows `block` put there.
  absl::Status Subtract(const Lane& lane, Range rows, Range block, Range columns) {
    return SubtractLuProduct(lane.cublas, *control_, Block(rows, block), Block(block, columns),
                             Block(rows, columns));
  }
  absl::Status Subtract(const Lane& lane, Range block, Range columns) {
    return Subtract(lane, {block.end, a_.rows}, block, columns);
  }

  // The same by the fastest product, behind Split(); `right`: where in the workspace the lane has
  // parts of its own factor.
  absl::Status SubtractFast(const Lane& lane, Range block, Range columns, size_t right) {
    const Range rows = {block.end, a_.rows};
    if constexpr (kIsSingle) {
      if (blocking_.one_tf32_product) {
        return SubtractOneTf32Product(lane, *control_, Block(rows, block), Block(block, columns),
                                      Block(rows, columns));
      }
      if (blocking_.tf32) {
        return SubtractTf32Product(lane, *control_, workspace_ + layout_.split,
                                   Block(block, columns), Block(rows, columns), workspace_ + right);
      }
    }
    return Subtract(lane, rows, block, columns);
  }

  BlockRowPlan<T>* Plans() const {
    return reinterpret_cast<BlockRowPlan<T>*>(workspace_ + layout_.plans);
  }
  // Of the panel's block that begins with or has the column; kept until the panel behind the next
  // one is there.
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
    panel.host = HostLine(streams_.report);
    if (!streams_.tells_columns) panel.host.columns = nullptr;
    panel.scratch = workspace_ + layout_.scratch;
    return panel;
  }

  const LuStreams streams_;
  const LuPanelKernels& kernels_;
  // Rows of U are found by products with inverses of tiles, where the GPU has clusters and the
  // shared memory; and there with more of it by the kernel that interchanges their rows too.
  const bool by_products_;
  const bool moves_by_products_;
  const LuBlocking blocking_;
  const MatrixView<T> a_;
  const int64_t columns_;
  const PanelLayout panels_;
  Range panel_;  // whose update is next
  bool begun_ = false;
  bool done_ = false;
  int64_t* const ipiv_;
  const Workspace layout_;
  std::byte* const workspace_;
  LuControl<T>* const control_;
  const StopRequested& stop_;
};

}  // namespace

size_t CroutLuWorkspaceBytes(const LuPanelKernels& kernels, const LuBlocking& blocking, DType dtype,
                             int64_t m, int64_t columns) {
  return Workspace::For(kernels, blocking, dtype, m, columns).bytes;
}

size_t MostCroutLuWorkspaceBytes(const LuPanelKernels& kernels, DType dtype, int64_t m,
                                 int64_t columns) {
  // Every bound in LuBlocking is a multiple, and from one to the next more columns need more.
  constexpr int64_t kUnit = 256;
  size_t most = 0;
  for (int64_t unit = 0; unit < columns; unit += kUnit) {
    const int64_t least = std::min(unit + kUnit, columns);
    most = std::max(most,
                    CroutLuWorkspaceBytes(kernels, LuBlocking::For(dtype, least), dtype, m, least));
  }
  // The scratch memory of panels alone may be larger for fewer rows.
  size_t scratch = 0;
  for (int64_t unit = 0; unit < m; unit += kUnit) {
    scratch = std::max(scratch, kernels.ScratchBytes(dtype, std::min(unit + kUnit, m)));
  }
  return most + scratch;
}

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

template absl::StatusOr<std::unique_ptr<PanelwiseLu>> MakePanelwiseCroutLu(
    const LuStreams&, const LuPanelKernels&, const LuBlocking&, const MatrixView<float>&, int64_t*,
    std::span<std::byte>, const StopRequested&);
template absl::StatusOr<std::unique_ptr<PanelwiseLu>> MakePanelwiseCroutLu(
    const LuStreams&, const LuPanelKernels&, const LuBlocking&, const MatrixView<double>&, int64_t*,
    std::span<std::byte>, const StopRequested&);
template absl::StatusOr<std::unique_ptr<PanelwiseLu>> MakePanelwiseCroutLu(
    const LuStreams&, const LuPanelKernels&, const LuBlocking&, const MatrixView<Complex<float>>&,
    int64_t*, std::span<std::byte>, const StopRequested&);
template absl::StatusOr<std::unique_ptr<PanelwiseLu>> MakePanelwiseCroutLu(
    const LuStreams&, const LuPanelKernels&, const LuBlocking&, const MatrixView<Complex<double>>&,
    int64_t*, std::span<std::byte>, const StopRequested&);

template absl::Status EnqueueCroutLu(const LuStreams&, const LuPanelKernels&, const LuBlocking&,
                                     const MatrixView<float>&, int64_t*, std::span<std::byte>,
                                     const StopRequested&);
template absl::Status EnqueueCroutLu(const LuStreams&, const LuPanelKernels&, const LuBlocking&,
                                     const MatrixView<double>&, int64_t*, std::span<std::byte>,
                                     const StopRequested&);

template absl::Status EnqueueCroutLu(const LuStreams&, const LuPanelKernels&, const LuBlocking&,
                                     const MatrixView<Complex<float>>&, int64_t*,
                                     std::span<std::byte>, const StopRequested&);
template absl::Status EnqueueCroutLu(const LuStreams&, const LuPanelKernels&, const LuBlocking&,
                                     const MatrixView<Complex<double>>&, int64_t*,
                                     std::span<std::byte>, const StopRequested&);

}  // namespace crout::cuda
