// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/methods.h"

#include "kernels/host/device/cost_model.h"
#include "kernels/host/irr_lu/irr_lu.h"

namespace crout::host {
namespace {

class HostIrrLu final : public BatchLu {
 public:
  explicit HostIrrLu(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override { return traits_; }

  absl::StatusOr<WorkspaceBytes> FactorWorkspaceBytes(const BatchExtent& a) const override {
    return WorkspaceBytes{.device = IrrGetrfWorkspaceBytes(executor_, a)};
  }
  absl::StatusOr<WorkspaceBytes> SolveWorkspaceBytes(const BatchExtent& lu) const override {
    return WorkspaceBytes{.device = IrrGetrsWorkspaceBytes(executor_, lu)};
  }
  absl::StatusOr<WorkspaceBytes> ErrorWorkspaceBytes(const BatchExtent& a) const override {
    return WorkspaceBytes{.device = IrrErrorsWorkspaceBytes(executor_, a)};
  }

  // Costs every element as if it belonged to the largest member: an upper bound, exact for members
  // of equal size.
  double PredictFactorSeconds(const BatchExtent& a) const override {
    const auto elements = static_cast<double>(a.bytes / SizeOf(a.dtype));
    const double flops = 2.0 / 3.0 * elements * a.max_diagonal;
    const bool all_cores = WidthFor(static_cast<int64_t>(elements)) == Width::kAllCores;
    const int cores = all_cores ? executor_.budget().total() : 1;
    return kCallSeconds + flops / (kVendorFlopsPerCore * RateFactor(a.dtype) * cores);
  }

  absl::Status Factor(ExecutionContext&, const IrregularBatch& a, std::span<const BatchMember>,
                      const BatchFactors& factors, const Workspace& workspace,
                      StopRequested stop) const override {
    return IrrGetrf(executor_, a, factors, workspace.device, stop);
  }

  absl::Status Solve(ExecutionContext&, Op op, const IrregularBatch& lu,
                     std::span<const BatchMember>, const BatchFactors& factors,
                     const IrregularBatch& b, const Workspace& workspace,
                     StopRequested stop) const override {
    return IrrGetrs(executor_, op, lu, factors, b, workspace.device, stop);
  }

  absl::Status BackwardErrors(ExecutionContext&, Op op, const IrregularBatch& a,
                              const IrregularBatch& x, const IrregularBatch& b, double* errors,
                              const Workspace& workspace) const override {
    IrrErrors(executor_, op, a, x, b, errors, workspace.device);
    return absl::OkStatus();
  }

 private:
  Executor& executor_;
  const MethodTraits traits_{
      .name = "irr_lu",
      .description = "LU of matrices of different sizes, partial pivoting (Abdelfattah et al.)",
      .operands = {OperandKind::kBatch},
      .types = kAllTypes,
      .unit_diagonal = UnitDiagonal::kL,
      .pivoting = PivotRule::kPartial,
      .stoppable = true};
};

}  // namespace

std::unique_ptr<BatchLu> MakeIrrLu(Executor& executor) {
  return std::make_unique<HostIrrLu>(executor);
}

}  // namespace crout::host
