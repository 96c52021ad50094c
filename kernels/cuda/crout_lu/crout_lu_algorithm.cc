// SPDX-License-Identifier: Apache-2.0

// The method crout_lu.
#include "kernels/cuda/crout_lu/crout_lu.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/method_costs.h"
#include "kernels/cuda/methods.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

class CudaCroutLu final : public LuAlgorithm {
 public:
  CudaCroutLu(DeviceCore& core, const LuPanelKernels& kernels) : core_(core), kernels_(kernels) {}

  const MethodTraits& traits() const override { return traits_; }

  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                        const LuParameters& parameters) const override {
    CROUT_RETURN_IF_ERROR(CheckPanelHeight(traits_.name, n, kernels_.MaxRows(dtype)));
    const LuBlocking blocking = LuBlocking::For(dtype, n, parameters.tf32_products);
    return CroutLuWorkspaceBytes(kernels_, blocking, dtype, n, n);
  }

  double PredictSeconds(DType dtype, int64_t n) const override {
    if (n > kernels_.MaxRows(dtype)) return kTooLarge;
    return core_.Calibrated("crout_lu", dtype, n,
                            PredictCroutLuSeconds(dtype, n, kernels_.clusters()));
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters& parameters,
                      StopRequested stop) const override {
    CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
    const LuBlocking blocking = LuBlocking::For(a.dtype, a.rows, parameters.tf32_products);
    return core_.Observe(Enqueue(Context::From(context), blocking, a, ipiv, workspace, stop));
  }

 private:
  absl::Status Enqueue(Context& context, const LuBlocking& blocking, const AnyMatrix& a,
                       int64_t* ipiv, std::span<std::byte> workspace,
                       const StopRequested& stop) const {
    CROUT_RETURN_IF_ERROR(DispatchDevice(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return EnqueueCroutLu(LuStreams::ForContext(context), kernels_, blocking, a.As<T>(), ipiv,
                            workspace, stop);
    }));
    CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(&context.report().info,
                                               CroutLuInfo(a.dtype, workspace), sizeof(int),
                                               cudaMemcpyDeviceToHost, context.stream()));
    return absl::OkStatus();
  }

  DeviceCore& core_;
  const LuPanelKernels kernels_;
  const MethodTraits traits_{
      .name = "crout_lu",
      .description = "blocked LU with partial pivoting and look-ahead, panels in clusters",
      .types = kAllTypes,
      .unit_diagonal = UnitDiagonal::kL,
      .pivoting = PivotRule::kPartial,
      .supports_tf32_products = true,
      .stoppable = true,
      .is_timed = true};
};

}  // namespace

absl::StatusOr<std::unique_ptr<LuAlgorithm>> MakeCroutLu(DeviceCore& core) {
  CROUT_RETURN_IF_ERROR(core.MakeCurrent());
  CROUT_ASSIGN_OR_RETURN(const LuPanelKernels kernels, LuPanelKernels::Create(core.limits()));
  return std::make_unique<CudaCroutLu>(core, kernels);
}

}  // namespace crout::cuda
