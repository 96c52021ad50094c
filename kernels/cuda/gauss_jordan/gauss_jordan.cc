// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/methods.h"

#include <algorithm>

#include "kernels/cuda/crout/blocked_crout.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/method_costs.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// Wide enough for products at the device's full speed. The stripe's own columns cost one panel
// latency each, whatever its width.
constexpr int64_t kStripe = 256;

// Reduces the columns of b (n rows) by the factored stripe [begin, end). Below the pivot block, the
// stripe holds L = A21 U^-1 and multiplies L^-1 B1. Above it, the stripe is unmodified and
// multiplies U^-1 L^-1 B1.
template <class T>
absl::Status Reduce(BlockedCrout<T>& steps, int64_t begin, int64_t end, const MatrixView<T>& b) {
  if (b.cols == 0) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(steps.Interchange(begin, end, b));
  CROUT_RETURN_IF_ERROR(steps.SolveLower(begin, end, b));
  CROUT_RETURN_IF_ERROR(steps.Subtract(end, b.rows, begin, end, b, b));
  CROUT_RETURN_IF_ERROR(steps.SolveUpper(begin, end, b));
  return steps.Subtract(0, begin, begin, end, b, b);
}

class CudaGaussJordan final : public DirectSolver {
 public:
  CudaGaussJordan(DeviceCore& core, const PcmPanelKernels& kernels)
      : core_(core), kernels_(kernels) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = "gauss_jordan",
        .description = "Gauss-Jordan elimination by stripes with partial pivoting (Carcenac 2014)",
        .types = kAllTypes};
    return kTraits;
  }

  // The panels' workspace, followed by ipiv.
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t) const override {
    CROUT_RETURN_IF_ERROR(CheckPanelHeight(name(), n, kernels_.MaxRows(dtype)));
    return DispatchDevice(dtype, [&](auto tag) {
      return PanelBytes<typename decltype(tag)::type>(n) + n * sizeof(int64_t);
    });
  }

  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override {
    if (n > kernels_.MaxRows(dtype)) return kTooLarge;
    return core_.Calibrated("pcmpp", dtype, n, PredictGaussJordanSeconds(dtype, n, nrhs));
  }

  absl::Status Solve(ExecutionContext& context, const AnyMatrix& a, const AnyMatrix& b,
                     std::span<std::byte> workspace, StopRequested stop) const override {
    CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
    return core_.Observe(DispatchDevice(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return Enqueue(Context::From(context), a.As<T>(), b.As<T>(), workspace, stop);
    }));
  }

 private:
  template <class T>
  int Width(int64_t n) const {
    return kernels_.WidthFor(kDTypeOf<T>, n, PcmPanelKernels::kMaxWidth);
  }

  template <class T>
  size_t PanelBytes(int64_t n) const {
    return BlockedCrout<T>::WorkspaceBytes(n, Width<T>(n));
  }

  template <class T>
  absl::Status Enqueue(Context& context, const MatrixView<T>& a, const MatrixView<T>& b,
                       std::span<std::byte> workspace, StopRequested stop) const {
    const int64_t n = a.rows;
    typename BlockedCrout<T>::Options options;
    options.width = Width<T>(n);
    CROUT_ASSIGN_OR_RETURN(const LuControl<T>* control,
                           BlockedCrout<T>::Start(context, n, options.width, workspace));
    auto* ipiv = reinterpret_cast<int64_t*>(workspace.data() + PanelBytes<T>(n));
    BlockedCrout<T> steps(context, kernels_, a, ipiv, workspace, options, stop);
    for (int64_t begin = 0; begin < n; begin += kStripe) {
      const int64_t end = std::min(begin + kStripe, n);
      CROUT_RETURN_IF_ERROR(steps.Factor(begin, end));
      CROUT_RETURN_IF_ERROR(Reduce(steps, begin, end, Columns(a, end, n)));
      CROUT_RETURN_IF_ERROR(Reduce(steps, begin, end, b));
    }
    CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(&context.report().info, &control->info, sizeof(int),
                                               cudaMemcpyDeviceToHost, context.stream()));
    return absl::OkStatus();
  }

  DeviceCore& core_;
  const PcmPanelKernels kernels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DirectSolver>> MakeGaussJordan(DeviceCore& core) {
  CROUT_RETURN_IF_ERROR(core.MakeCurrent());
  CROUT_ASSIGN_OR_RETURN(const PcmPanelKernels kernels, PcmPanelKernels::Create(core.limits()));
  return std::make_unique<CudaGaussJordan>(core, kernels);
}

}  // namespace crout::cuda
