// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/methods.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/gauss_jordan/echelon_panel.h"
#include "kernels/cuda/ops/blas.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

constexpr size_t kAlignment = 256;
// Cost model: two launches per column, and products bound by memory bandwidth.
constexpr double kSecondsOfColumn = 1e-5;
constexpr double kFlopsPerSecond = 5e12;

// Offsets in the workspace.
struct Layout {
  size_t state = 0;
  size_t pivot_columns = 0;
  size_t pivot_row = 0;
  size_t pivot_transforms = 0;
  size_t transform = 0;
  size_t rows = 0;
  size_t bytes = 0;
};

absl::StatusOr<Layout> ComputeLayout(DType dtype, int64_t rows, int64_t cols) {
  Layout layout;
  ByteSum sum;
  const auto take = [&](int64_t height, int64_t width, DType type) -> absl::StatusOr<size_t> {
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, MatrixBytes(height, width, type));
    CROUT_ASSIGN_OR_RETURN(const size_t offset, sum.total());
    sum.Add(bytes).Add((kAlignment - bytes % kAlignment) % kAlignment);
    return offset;
  };
  CROUT_ASSIGN_OR_RETURN(layout.state,
                         take(sizeof(EchelonState) / sizeof(double), 1, DType::kFloat64));
  CROUT_ASSIGN_OR_RETURN(layout.pivot_columns, take(std::min(rows, cols), 1, DType::kFloat64));
  CROUT_ASSIGN_OR_RETURN(layout.pivot_row, take(2 * kEchelonPanel, 1, dtype));
  CROUT_ASSIGN_OR_RETURN(layout.pivot_transforms, take(kEchelonPanel, kEchelonPanel, dtype));
  CROUT_ASSIGN_OR_RETURN(layout.transform, take(rows, kEchelonPanel, dtype));
  CROUT_ASSIGN_OR_RETURN(layout.rows, take(kEchelonPanel, cols, dtype));
  CROUT_ASSIGN_OR_RETURN(layout.bytes, sum.total());
  return layout;
}

template <class T>
absl::Status Enqueue(Context& context, const MatrixView<T>& a, int64_t eligible,
                     PivotTolerance tolerance, const Layout& layout, std::byte* workspace,
                     StopRequested stop) {
  const cudaStream_t stream = context.stream();
  EchelonPanel<T> panel;
  panel.a = a;
  panel.eligible = eligible;
  panel.tolerance = tolerance.absolute;
  panel.follows_growth = tolerance.follows_growth;
  panel.transform = reinterpret_cast<T*>(workspace + layout.transform);
  panel.pivot_row = reinterpret_cast<T*>(workspace + layout.pivot_row);
  panel.pivot_transforms = reinterpret_cast<T*>(workspace + layout.pivot_transforms);
  panel.rows = reinterpret_cast<T*>(workspace + layout.rows);
  panel.pivot_columns = reinterpret_cast<int64_t*>(workspace + layout.pivot_columns);
  panel.state = reinterpret_cast<EchelonState*>(workspace + layout.state);
  panel.host = HostSignals(context.report());
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(panel.state, 0, sizeof(EchelonState), stream));
  for (panel.begin = 0; panel.begin < eligible; panel.begin = panel.end) {
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    panel.end = std::min(panel.begin + kEchelonPanel, eligible);
    CROUT_RETURN_IF_CUDA_ERROR(
        cudaMemsetAsync(panel.transform, 0, a.rows * kEchelonPanel * sizeof(T), stream));
    CROUT_RETURN_IF_CUDA_ERROR(LaunchEchelonPanel(panel, stream));
    CROUT_RETURN_IF_CUDA_ERROR(LaunchEchelonRows(panel, stream));
    if (panel.end == a.cols) continue;
    const int64_t rest = a.cols - panel.end;
    CROUT_RETURN_IF_ERROR(SubtractProduct<T>(
        context.cublas(), Op::kNone, {panel.transform, a.rows, kEchelonPanel, a.rows},
        {panel.rows + panel.end * kEchelonPanel, kEchelonPanel, rest, kEchelonPanel},
        {&a(0, panel.end), a.rows, rest, a.ld}));
  }
  return absl::OkStatus();
}

class CudaEchelonReducer final : public EchelonReducer {
 public:
  explicit CudaEchelonReducer(DeviceCore& core) : core_(core) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = "gauss_jordan",
        .description = "Gauss-Jordan elimination to reduced row echelon form, partial pivoting",
        .types = kAllTypes};
    return kTraits;
  }

  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t rows, int64_t cols) const override {
    CROUT_ASSIGN_OR_RETURN(const Layout layout, ComputeLayout(dtype, rows, cols));
    return layout.bytes;
  }

  double PredictSeconds(DType, int64_t rows, int64_t cols) const override {
    const double elements = static_cast<double>(rows) * static_cast<double>(cols);
    return kSecondsOfColumn * static_cast<double>(cols) +
           2 * elements * static_cast<double>(std::min(rows, cols)) / kFlopsPerSecond;
  }

  absl::StatusOr<EchelonForm> Reduce(ExecutionContext& context, const AnyMatrix& a,
                                     int64_t eligible, PivotTolerance tolerance,
                                     std::span<std::byte> workspace,
                                     StopRequested stop) const override {
    Context& cuda = Context::From(context);
    CROUT_ASSIGN_OR_RETURN(const Layout layout, ComputeLayout(a.dtype, a.rows, a.cols));
    CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
    cuda.report().stop = 0;
    CROUT_RETURN_IF_ERROR(core_.Observe(DispatchDevice(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return Enqueue(cuda, a.As<T>(), eligible, tolerance, layout, workspace.data(), stop);
    })));
    CROUT_RETURN_IF_ERROR(cuda.SynchronizeOrStop(stop));
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    EchelonState state;
    CROUT_RETURN_IF_ERROR(
        cuda.ops().CopyToHost(workspace.data() + layout.state, &state, sizeof(state)));
    CROUT_RETURN_IF_ERROR(cuda.Synchronize());
    EchelonForm form;
    form.tolerance = tolerance.absolute;
    form.max_abs_u = state.max_abs_u;
    if (state.rank > 0) form.Accept(state.least_pivot);
    if (state.rejected != 0) form.Reject(state.largest_rejected);
    form.pivot_columns.resize(state.rank);
    CROUT_RETURN_IF_ERROR(cuda.ops().CopyToHost(workspace.data() + layout.pivot_columns,
                                                form.pivot_columns.data(),
                                                state.rank * sizeof(int64_t)));
    CROUT_RETURN_IF_ERROR(cuda.Synchronize());
    return form;
  }

 private:
  DeviceCore& core_;
};

}  // namespace

std::unique_ptr<EchelonReducer> MakeEchelonReducer(DeviceCore& core) {
  return std::make_unique<CudaEchelonReducer>(core);
}

}  // namespace crout::cuda
