// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/methods.h"

#include "absl/strings/str_cat.h"
#include "kernels/cuda/blocked/recursive_lu.h"
#include "kernels/cuda/blocked/tiles.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/method_costs.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

template <class T>
class BlockLuSteps final : public RecursiveLu<T> {
 public:
  BlockLuSteps(Context& context, const MatrixView<T>& a, LuControl<T>* control, StopRequested stop)
      : RecursiveLu<T>(context, a, control, kMaxSolveTile<T>, stop) {}

 private:
  absl::Status FactorPanel(int64_t begin, int64_t end) override {
    const cudaStream_t stream = this->context().stream();
    const MatrixView<T> tile = this->Block(begin, end, begin, end);
    CROUT_RETURN_IF_CUDA_ERROR(
        LaunchLuTile(tile, begin, HostSignals(this->context().report()), this->control(), stream));
    CROUT_RETURN_IF_CUDA_ERROR(LaunchSolveTile(TileSolve::kUpperFromRight, tile,
                                               this->Block(end, this->a().rows, begin, end),
                                               this->control(), stream));
    return absl::OkStatus();
  }

  absl::Status SolveLowerTile(int64_t begin, int64_t end, const MatrixView<T>& b) override {
    CROUT_RETURN_IF_CUDA_ERROR(
        LaunchSolveTile(TileSolve::kUnitLower, this->Block(begin, end, begin, end),
                        Rows(b, begin, end), this->control(), this->context().stream()));
    return absl::OkStatus();
  }
};

template <class T>
absl::Status Enqueue(Context& context, const MatrixView<T>& a, int64_t* ipiv,
                     std::span<std::byte> workspace, StopRequested stop) {
  if (workspace.size() < sizeof(LuControl<T>)) {
    return absl::InternalError(absl::StrCat("block_lu needs ", sizeof(LuControl<T>),
                                            " bytes of workspace, got ", workspace.size()));
  }
  auto* control = reinterpret_cast<LuControl<T>*>(workspace.data());
  CROUT_RETURN_IF_ERROR(RecursiveLu<T>::Start(context, control));
  CROUT_RETURN_IF_CUDA_ERROR(LaunchIdentityPivots(ipiv, a.rows, context.stream()));
  CROUT_RETURN_IF_ERROR(BlockLuSteps<T>(context, a, control, stop).Factor(0, a.rows));
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(&context.report().info, &control->info, sizeof(int),
                                             cudaMemcpyDeviceToHost, context.stream()));
  return absl::OkStatus();
}

class CudaBlockLu final : public LuAlgorithm {
 public:
  explicit CudaBlockLu(DeviceCore& core) : core_(core) {}

  const MethodTraits& traits() const override { return traits_; }

  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, const LuParameters&) const override {
    return sizeof(LuControl<Complex<double>>);
  }

  double PredictSeconds(DType dtype, int64_t n) const override {
    return core_.Calibrated("block_lu", dtype, n, PredictBlockLuSeconds(dtype, n));
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters&,
                      StopRequested stop) const override {
    CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
    return core_.Observe(DispatchDevice(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return Enqueue(Context::From(context), a.As<T>(), ipiv, workspace, stop);
    }));
  }

 private:
  DeviceCore& core_;
  const MethodTraits traits_{.name = "block_lu",
                             .description = "blocked LU without pivoting, tiles in shared memory",
                             .types = kAllTypes,
                             .unit_diagonal = UnitDiagonal::kL,
                             .pivoting = PivotRule::kNone,
                             .stoppable = true,
                             .is_timed = true};
};

}  // namespace

std::unique_ptr<LuAlgorithm> MakeBlockLu(DeviceCore& core) {
  return std::make_unique<CudaBlockLu>(core);
}

}  // namespace crout::cuda
