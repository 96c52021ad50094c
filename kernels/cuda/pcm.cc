#include "kernels/cuda/pcm.h"

#include "kernels/cuda/crout_lu_steps.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/own_costs.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

class CudaPcm final : public LuAlgorithm {
 public:
  CudaPcm(CudaDeviceCore& core, const CroutPanelKernels& kernels, const AlgorithmTraits& traits)
      : core_(core), kernels_(kernels), traits_(traits) {}

  const AlgorithmTraits& traits() const override { return traits_; }

  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                        const LuParameters& parameters) const override {
    CROUT_RETURN_IF_ERROR(CheckPanelHeight(traits_.name, n, kernels_.MaxRows(dtype)));
    const int width = Width(dtype, n, parameters);
    return DispatchDType(dtype, [&](auto tag) {
      return CroutLuSteps<typename decltype(tag)::type>::WorkspaceBytes(n, width);
    });
  }

  double PredictSeconds(DType dtype, int64_t n) const override {
    if (n > kernels_.MaxRows(dtype)) return kTooLarge;
    return core_.Calibrated("pcmpp", dtype, n, PredictPcmSeconds(n));
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters& parameters,
                      StopRequested stop) const override {
    CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
    return core_.Observe(DispatchDType(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return Enqueue(CudaContext::From(context), a.As<T>(), ipiv, workspace, parameters, stop);
    }));
  }

 private:
  int Width(DType dtype, int64_t n, const LuParameters& parameters) const {
    const int wanted = parameters.block_size;
    return kernels_.WidthFor(dtype, n, wanted == 0 ? CroutPanelKernels::kMaxWidth : wanted);
  }

  template <class T>
  absl::Status Enqueue(CudaContext& context, const MatrixView<T>& a, int64_t* ipiv,
                       std::span<std::byte> workspace, const LuParameters& parameters,
                       StopRequested stop) const {
    typename CroutLuSteps<T>::Options options;
    options.width = Width(kDTypeOf<T>, a.rows, parameters);
    options.pivoting.rule = traits_.pivoting;
    if (parameters.pivoting.has_value()) options.pivoting = *parameters.pivoting;
    CROUT_ASSIGN_OR_RETURN(const LuControl<T>* control,
                           CroutLuSteps<T>::Start(context, a.rows, options.width, workspace));
    CroutLuSteps<T> steps(context, kernels_, a, ipiv, workspace, options, stop);
    CROUT_RETURN_IF_ERROR(steps.Factor(0, a.rows));
    CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(&context.report().info, &control->info, sizeof(int),
                                               cudaMemcpyDeviceToHost, context.stream()));
    return absl::OkStatus();
  }

  CudaDeviceCore& core_;
  const CroutPanelKernels kernels_;
  const AlgorithmTraits traits_;
};

absl::StatusOr<std::unique_ptr<LuAlgorithm>> Make(CudaDeviceCore& core,
                                                  const AlgorithmTraits& traits) {
  CROUT_RETURN_IF_ERROR(core.MakeCurrent());
  CROUT_ASSIGN_OR_RETURN(const CroutPanelKernels kernels, CroutPanelKernels::Create(core.limits()));
  return std::make_unique<CudaPcm>(core, kernels, traits);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakeCudaPcm(CudaDeviceCore& core) {
  AlgorithmTraits traits{"pcm", UnitDiagonal::kU, PivotRule::kNone,
                         "parallel Crout's method without pivoting (Cejka 2023), blocked"};
  traits.takes_block_size = true;
  traits.stoppable = true;
  return Make(core, traits);
}

absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakeCudaPcmpp(CudaDeviceCore& core) {
  AlgorithmTraits traits{"pcmpp", UnitDiagonal::kU, PivotRule::kPartial,
                         "parallel Crout's method with partial pivoting (Cejka 2023), blocked"};
  traits.takes_pivoting = true;
  traits.takes_block_size = true;
  traits.stoppable = true;
  return Make(core, traits);
}

}  // namespace crout
