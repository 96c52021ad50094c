// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/methods.h"

#include "kernels/cuda/crout/blocked_crout.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/method_costs.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

class CudaPcm final : public LuAlgorithm {
 public:
  CudaPcm(DeviceCore& core, const PcmPanelKernels& kernels, const MethodTraits& traits)
      : core_(core), kernels_(kernels), traits_(traits) {}

  const MethodTraits& traits() const override { return traits_; }

  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                        const LuParameters& parameters) const override {
    CROUT_RETURN_IF_ERROR(CheckPanelHeight(traits_.name, n, kernels_.MaxRows(dtype)));
    const int width = Width(dtype, n, parameters);
    return DispatchDevice(dtype, [&](auto tag) {
      return BlockedCrout<typename decltype(tag)::type>::WorkspaceBytes(n, width);
    });
  }

  double PredictSeconds(DType dtype, int64_t n) const override {
    if (n > kernels_.MaxRows(dtype)) return kTooLarge;
    return core_.Calibrated("pcmpp", dtype, n, PredictPcmSeconds(dtype, n));
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters& parameters,
                      StopRequested stop) const override {
    CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
    return core_.Observe(DispatchDevice(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return Enqueue(Context::From(context), a.As<T>(), ipiv, workspace, parameters, stop);
    }));
  }

 private:
  int Width(DType dtype, int64_t n, const LuParameters& parameters) const {
    const int wanted = parameters.block_size;
    return kernels_.WidthFor(dtype, n, wanted == 0 ? PcmPanelKernels::kMaxWidth : wanted);
  }

  template <class T>
  absl::Status Enqueue(Context& context, const MatrixView<T>& a, int64_t* ipiv,
                       std::span<std::byte> workspace, const LuParameters& parameters,
                       StopRequested stop) const {
    typename BlockedCrout<T>::Options options;
    options.width = Width(kDTypeOf<T>, a.rows, parameters);
    options.pivoting.rule = traits_.pivoting;
    if (parameters.pivoting.has_value()) options.pivoting = *parameters.pivoting;
    CROUT_ASSIGN_OR_RETURN(const LuControl<T>* control,
                           BlockedCrout<T>::Start(context, a.rows, options.width, workspace));
    BlockedCrout<T> steps(context, kernels_, a, ipiv, workspace, options, stop);
    CROUT_RETURN_IF_ERROR(steps.Factor(0, a.rows));
    CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(&context.report().info, &control->info, sizeof(int),
                                               cudaMemcpyDeviceToHost, context.stream()));
    return absl::OkStatus();
  }

  DeviceCore& core_;
  const PcmPanelKernels kernels_;
  const MethodTraits traits_;
};

absl::StatusOr<std::unique_ptr<LuAlgorithm>> Make(DeviceCore& core, const MethodTraits& traits) {
  CROUT_RETURN_IF_ERROR(core.MakeCurrent());
  CROUT_ASSIGN_OR_RETURN(const PcmPanelKernels kernels, PcmPanelKernels::Create(core.limits()));
  return std::make_unique<CudaPcm>(core, kernels, traits);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakePcm(DeviceCore& core) {
  return Make(core,
              {.name = "pcm",
               .description = "parallel Crout's method without pivoting (Cejka 2023), blocked",
               .types = kAllTypes,
               .unit_diagonal = UnitDiagonal::kU,
               .pivoting = PivotRule::kNone,
               .block_sizes = {8, 32},
               .stoppable = true});
}

absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakePcmpp(DeviceCore& core) {
  return Make(core,
              {.name = "pcmpp",
               .description = "parallel Crout's method with partial pivoting (Cejka 2023), blocked",
               .types = kAllTypes,
               .unit_diagonal = UnitDiagonal::kU,
               .pivoting = PivotRule::kPartial,
               .supports_pivoting = true,
               .block_sizes = {8, 32},
               .stoppable = true,
               .is_timed = true});
}

}  // namespace crout::cuda
