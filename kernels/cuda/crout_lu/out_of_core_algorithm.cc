// SPDX-License-Identifier: Apache-2.0

// Device::MakeOutOfCoreLu of a GPU.
#include <algorithm>
#include <utility>

#include "kernels/cuda/crout_lu/out_of_core.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/method_costs.h"
#include "kernels/cuda/methods.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// Bytes per second over PCI Express 5 in one direction.
constexpr double kCopyRate = 50e9;

class CudaOutOfCoreLu final : public OutOfCoreLu {
 public:
  CudaOutOfCoreLu(DeviceCore& core, const LuPanelKernels& kernels,
                  std::unique_ptr<ExecutionContext> context, Buffer workspace)
      : core_(core),
        kernels_(kernels),
        context_(std::move(context)),
        workspace_(std::move(workspace)) {}

  const MethodTraits& traits() const override { return traits_; }
  size_t device_bytes() const override { return workspace_.size(); }

  absl::StatusOr<size_t> LeastDeviceBytes(DType dtype, int64_t n,
                                          const LuParameters& parameters) const override {
    CROUT_RETURN_IF_ERROR(CheckPanelHeight(traits_.name, n, kernels_.MaxRows(dtype)));
    return OutOfCoreBytes(
        kernels_, OutOfCoreBlocking::Narrowest(dtype, n, parameters.tf32_products), dtype, n);
  }

  // The larger of the time of the products and of the copies to the GPU. The copies of the first
  // and the last block column, and the pass that interchanges rows of L, overlap with neither.
  double PredictSeconds(DType dtype, int64_t n) const override {
    const absl::StatusOr<OutOfCoreBlocking> blocking = Blocking(dtype, n, false);
    const double products = core_.Calibrated("crout_lu", dtype, n,
                                             PredictCroutLuSeconds(dtype, n, kernels_.clusters()));
    if (!blocking.ok()) return products;  // excluded by LeastDeviceBytes
    const auto order = static_cast<double>(n);
    const auto width = static_cast<double>(std::min(blocking->width, n));
    const double column = order * static_cast<double>(SizeOf(dtype)) / kCopyRate;
    const double copies = column * order * order / (3 * width);
    return std::max(products, copies) + 2 * width * column + order * column;
  }

  absl::StatusOr<int64_t> Factor(const AnyMatrix& a, int64_t* ipiv, const LuParameters& parameters,
                                 DeviceReport& report, StopRequested stop) override {
    CROUT_ASSIGN_OR_RETURN(const OutOfCoreBlocking blocking,
                           Blocking(a.dtype, a.rows, parameters.tf32_products));
    CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
    // FactorOutOfCore reports to the GPU's context; the job reads `report`.
    const auto forward = [&] {
      report.ReportColumns(context_->report().ColumnsDone());
      return stop();
    };
    absl::StatusOr<int64_t> info = DispatchDevice(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return FactorOutOfCore(Context::From(*context_), kernels_, blocking, a.As<T>(), ipiv,
                             {workspace_.data(), workspace_.size()}, forward);
    });
    CROUT_RETURN_IF_ERROR(core_.Observe(info.status()));
    return info;
  }

 private:
  absl::StatusOr<OutOfCoreBlocking> Blocking(DType dtype, int64_t n, bool tf32_products) const {
    return OutOfCoreBlocking::For(kernels_, dtype, n, workspace_.size(), tf32_products);
  }

  DeviceCore& core_;
  const LuPanelKernels kernels_;
  const std::unique_ptr<ExecutionContext> context_;
  const Buffer workspace_;
  const MethodTraits traits_{
      .name = "crout_lu",
      .description = "blocked LU with partial pivoting on a GPU, block columns in host memory",
      .types = kAllTypes,
      .unit_diagonal = UnitDiagonal::kL,
      .pivoting = PivotRule::kPartial,
      .supports_tf32_products = true,
      .stoppable = true};
};

}  // namespace

absl::StatusOr<std::unique_ptr<OutOfCoreLu>> MakeOutOfCoreLu(
    DeviceCore& core, std::unique_ptr<ExecutionContext> context, Buffer workspace) {
  CROUT_RETURN_IF_ERROR(core.MakeCurrent());
  CROUT_ASSIGN_OR_RETURN(const LuPanelKernels kernels, LuPanelKernels::Create(core.limits()));
  return std::make_unique<CudaOutOfCoreLu>(core, kernels, std::move(context), std::move(workspace));
}

}  // namespace crout::cuda
