#include "kernels/cuda/crout_lu.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/cancellation.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/follow_panel.h"
#include "kernels/cuda/interchange_rows.h"
#include "kernels/cuda/lu_product.h"
#include "kernels/cuda/own_costs.h"
#include "kernels/cuda/solve_tile.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// The control; plans, one for each lane; cuBLAS's workspace of the urgent lane, with look-ahead;
// the panels' scratch. cuBLAS wants its own at a multiple of 256 bytes.
constexpr size_t kPlansOffset = 256;
constexpr size_t kCublasOffset = kPlansOffset + 2 * sizeof(InterchangePlan);
static_assert(kCublasOffset % 256 == 0);

size_t ScratchOffset(const LuBlocking& blocking) {
  return kCublasOffset + (blocking.look_ahead ? CudaContext::kCublasWorkspaceBytes : 0);
}

template <class T>
class CroutLu {
 public:
  CroutLu(CudaContext& context, const LuPanelKernels& kernels, const LuBlocking& blocking,
          const MatrixView<T>& a, int64_t* ipiv, std::span<std::byte> workspace,
          const StopRequested& stop)
      : context_(context),
        kernels_(kernels),
        blocking_(blocking),
        a_(a),
        columns_(std::min(a.rows, a.cols)),
        ipiv_(ipiv),
        control_(reinterpret_cast<LuControl<T>*>(workspace.data())),
        plans_(reinterpret_cast<InterchangePlan*>(workspace.data() + kPlansOffset)),
        cublas_workspace_(workspace.data() + kCublasOffset),
        scratch_(workspace.data() + ScratchOffset(blocking)),
        stop_(stop) {}

  absl::Status Run() {
    const DeviceScalars scalars(context_.cublas());
    if (blocking_.look_ahead && columns_ > blocking_.block) return RunAhead();
    const CudaLane lane = context_.lane();
    CROUT_RETURN_IF_ERROR(Factor(lane, 0, columns_));
    return Update(lane, 0, columns_, {columns_, a_.cols});
  }

 private:
  // Columns [begin, end).
  struct Range {
    int64_t begin;
    int64_t end;
  };

  MatrixView<T> Block(Range rows, Range columns) const {
    return {a_.data + rows.begin + columns.begin * a_.ld, rows.end - rows.begin,
            columns.end - columns.begin, a_.ld};
  }
  MatrixView<T> Columns(Range columns) const { return Block({0, a_.rows}, columns); }

  // Panels on the urgent lane, the rest on the context's own.
  absl::Status RunAhead() {
    LookAhead& ahead = context_.look_ahead();
    const DeviceScalars scalars(ahead.lane().cublas);
    CROUT_RETURN_IF_CUBLAS_ERROR(cublasSetWorkspace(ahead.lane().cublas, cublas_workspace_,
                                                    CudaContext::kCublasWorkspaceBytes));
    CROUT_RETURN_IF_ERROR(ahead.Fork());
    const absl::Status status = FactorAhead(ahead);
    // Whatever happened: what follows on the context's stream comes after all of it.
    const absl::Status joined = ahead.Join();
    return status.ok() ? joined : status;
  }

  absl::Status FactorAhead(LookAhead& ahead) {
    const CudaLane lane = context_.lane();
    const CudaLane urgent = ahead.lane();
    const auto end_of = [&](int64_t begin) { return std::min(begin + blocking_.block, columns_); };
    CROUT_RETURN_IF_ERROR(Factor(urgent, 0, end_of(0)));
    for (int64_t begin = 0; begin < columns_; begin = end_of(begin)) {
      const int64_t end = end_of(begin);
      const int64_t next = end_of(end);
      // The panel is there; the columns of the next one have every update but this panel's.
      CROUT_RETURN_IF_ERROR(ahead.Meet());
      CROUT_RETURN_IF_ERROR(Update(urgent, begin, end, {end, next}));
      CROUT_RETURN_IF_ERROR(Interchange(lane, begin, end, {0, a_.cols}, {begin, next}));
      CROUT_RETURN_IF_ERROR(Eliminate(lane, begin, end, {next, a_.cols}));
      CROUT_RETURN_IF_ERROR(Factor(urgent, end, next));
    }
    return absl::OkStatus();
  }

  // The columns [begin, end) of the rows from `begin` on; interchanges stay within them.
  absl::Status Factor(const CudaLane& lane, int64_t begin, int64_t end) {
    if (end - begin <= blocking_.inner) return FactorInner(lane, begin, end);
    const int64_t pieces = (end - begin + blocking_.inner - 1) / blocking_.inner;
    const int64_t middle = begin + pieces / 2 * blocking_.inner;
    CROUT_RETURN_IF_ERROR(Factor(lane, begin, middle));
    CROUT_RETURN_IF_ERROR(Update(lane, begin, middle, {middle, end}));
    CROUT_RETURN_IF_ERROR(Factor(lane, middle, end));
    return Interchange(lane, middle, end, {begin, middle});
  }

  absl::Status FactorInner(const CudaLane& lane, int64_t begin, int64_t end) {
    for (int64_t leaf = begin; leaf < end;) {
      if (const absl::Status status = CheckNotStopped(stop_); !status.ok()) {
        context_.report().stop = 1;
        return status;
      }
      const int64_t width = kernels_.WidthFor(kDTypeOf<T>, a_.rows, leaf);
      const int64_t behind = std::min(leaf + width, end);
      const LuPanel<T> panel = Panel(leaf, behind);
      const Range rows = {leaf, a_.rows};
      CROUT_RETURN_IF_CUDA_ERROR(kernels_.Launch(panel, lane.stream));
      CROUT_RETURN_IF_CUDA_ERROR(LaunchFollowPanel(panel, Block(rows, {begin, leaf}),
                                                   Block(rows, {behind, end}), kernels_.clusters(),
                                                   lane.stream));
      CROUT_RETURN_IF_ERROR(Subtract(lane, {behind, a_.rows}, {leaf, behind}, {behind, end}));
      leaf = behind;
    }
    return absl::OkStatus();
  }

  // The columns `columns` after the panel [begin, end).
  absl::Status Update(const CudaLane& lane, int64_t begin, int64_t end, Range columns) {
    CROUT_RETURN_IF_ERROR(Interchange(lane, begin, end, columns));
    return Eliminate(lane, begin, end, columns);
  }

  // The same but for its interchanges.
  absl::Status Eliminate(const CudaLane& lane, int64_t begin, int64_t end, Range columns) {
    CROUT_RETURN_IF_ERROR(SolveLower(lane, begin, end, columns));
    return Subtract(lane, {end, a_.rows}, {begin, end}, columns);
  }

  // Of all of `columns` but those in the gap.
  absl::Status Interchange(const CudaLane& lane, int64_t begin, int64_t end, Range columns,
                           ColumnGap gap = {}) {
    InterchangePlan* const plan = plans_ + (lane.stream == context_.stream() ? 0 : 1);
    CROUT_RETURN_IF_CUDA_ERROR(LaunchInterchangeRows(Columns(columns), gap, ipiv_, begin, end, plan,
                                                     control_, lane.stream));
    return absl::OkStatus();
  }

  absl::Status SolveLower(const CudaLane& lane, int64_t begin, int64_t end, Range columns) {
    if (columns.begin == columns.end) return absl::OkStatus();
    if (end - begin <= kMaxTile) {
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchSolveTile(TileSolve::kUnitLower, Block({begin, end}, {begin, end}),
                          Block({begin, end}, columns), control_, lane.stream));
      return absl::OkStatus();
    }
    const int64_t tiles = (end - begin + kMaxTile - 1) / kMaxTile;
    const int64_t middle = begin + tiles / 2 * kMaxTile;
    CROUT_RETURN_IF_ERROR(SolveLower(lane, begin, middle, columns));
    CROUT_RETURN_IF_ERROR(Subtract(lane, {middle, end}, {begin, middle}, columns));
    return SolveLower(lane, middle, end, columns);
  }

  // The rows of `columns`, minus what the panel's columns [begin, end) put there.
  absl::Status Subtract(const CudaLane& lane, Range rows, Range panel, Range columns) {
    return SubtractLuProduct(lane.cublas, *control_, Block(rows, panel), Block(panel, columns),
                             Block(rows, columns));
  }

  LuPanel<T> Panel(int64_t begin, int64_t end) const {
    LuPanel<T> panel;
    panel.a = Block({begin, a_.rows}, {begin, end});
    panel.begin = begin;
    panel.ipiv = ipiv_;
    panel.control = control_;
    panel.host = HostLine(context_.report());
    panel.scratch = scratch_;
    return panel;
  }

  CudaContext& context_;
  const LuPanelKernels& kernels_;
  const LuBlocking blocking_;
  const MatrixView<T> a_;
  const int64_t columns_;
  int64_t* const ipiv_;
  LuControl<T>* const control_;
  InterchangePlan* const plans_;
  std::byte* const cublas_workspace_;
  std::byte* const scratch_;
  const StopRequested& stop_;
};

class CudaCroutLu final : public LuAlgorithm {
 public:
  CudaCroutLu(CudaDeviceCore& core, const LuPanelKernels& kernels)
      : core_(core), kernels_(kernels) {
    traits_.stoppable = true;
  }

  const AlgorithmTraits& traits() const override { return traits_; }

  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                        const LuParameters&) const override {
    return CroutLuWorkspaceBytes(kernels_, LuBlocking::For(n), dtype, n);
  }

  double PredictSeconds(DType, int64_t n) const override {
    return PredictCroutLuSeconds(n, kernels_.clusters());
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters&,
                      StopRequested stop) const override {
    CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
    return core_.Observe(Enqueue(CudaContext::From(context), a, ipiv, workspace, stop));
  }

 private:
  absl::Status Enqueue(CudaContext& context, const AnyMatrix& a, int64_t* ipiv,
                       std::span<std::byte> workspace, const StopRequested& stop) const {
    CROUT_RETURN_IF_ERROR(DispatchDType(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return EnqueueCroutLu(context, kernels_, LuBlocking::For(a.rows), a.As<T>(), ipiv, workspace,
                            stop);
    }));
    CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(&context.report().info,
                                               CroutLuInfo(a.dtype, workspace), sizeof(int),
                                               cudaMemcpyDeviceToHost, context.stream()));
    return absl::OkStatus();
  }

  CudaDeviceCore& core_;
  const LuPanelKernels kernels_;
  AlgorithmTraits traits_{"crout_lu", UnitDiagonal::kL, PivotRule::kPartial,
                          "blocked LU with partial pivoting and look-ahead, panels in clusters"};
};

}  // namespace

LuBlocking LuBlocking::For(int64_t columns) {
  if (columns <= 2048) return {columns, columns, false};
  if (columns <= 12288) return {512, 512, true};
  return {columns <= 24576 ? 512 : 1024, 128, true};
}

size_t CroutLuWorkspaceBytes(const LuPanelKernels& kernels, const LuBlocking& blocking, DType dtype,
                             int64_t m) {
  return ScratchOffset(blocking) + kernels.ScratchBytes(dtype, m);
}

const int* CroutLuInfo(DType dtype, std::span<const std::byte> workspace) {
  return DispatchDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return &reinterpret_cast<const LuControl<T>*>(workspace.data())->info;
  });
}

template <class T>
absl::Status EnqueueCroutLu(CudaContext& context, const LuPanelKernels& kernels,
                            const LuBlocking& blocking, const MatrixView<T>& a, int64_t* ipiv,
                            std::span<std::byte> workspace, const StopRequested& stop) {
  const size_t needed = CroutLuWorkspaceBytes(kernels, blocking, kDTypeOf<T>, a.rows);
  if (workspace.size() < needed) {
    return absl::InternalError(
        absl::StrCat("crout_lu needs ", needed, " bytes of workspace, got ", workspace.size()));
  }
  context.report().stop = 0;
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(workspace.data() + ScratchOffset(blocking), 0,
                                             kernels.ScratchBytes(kDTypeOf<T>, a.rows),
                                             context.stream()));
  CROUT_RETURN_IF_CUDA_ERROR(
      LaunchStartLu(reinterpret_cast<LuControl<T>*>(workspace.data()), context.stream()));
  return CroutLu<T>(context, kernels, blocking, a, ipiv, workspace, stop).Run();
}

template absl::Status EnqueueCroutLu(CudaContext&, const LuPanelKernels&, const LuBlocking&,
                                     const MatrixView<float>&, int64_t*, std::span<std::byte>,
                                     const StopRequested&);
template absl::Status EnqueueCroutLu(CudaContext&, const LuPanelKernels&, const LuBlocking&,
                                     const MatrixView<double>&, int64_t*, std::span<std::byte>,
                                     const StopRequested&);

absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakeCudaCroutLu(CudaDeviceCore& core) {
  CROUT_RETURN_IF_ERROR(core.MakeCurrent());
  CROUT_ASSIGN_OR_RETURN(const LuPanelKernels kernels, LuPanelKernels::Create());
  return std::make_unique<CudaCroutLu>(core, kernels);
}

}  // namespace crout
